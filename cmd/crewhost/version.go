package main

import (
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

// release is the version of this source tree. A build of a tagged commit
// reports the tag instead.
const release = "0.1.0-dev"

// versionInfo is what the version command tells.
type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func version() versionInfo {
	v := versionInfo{Version: release, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if main := info.Main.Version; main != "" && main != "(devel)" {
		v.Version = main
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func versionCommand(c *console) *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version",
		Flags: []cli.Flag{formatFlagOf("text", "json")},
		Action: func(ctx *cli.Context) error {
			out, err := outputOf(ctx, c)
			if err != nil {
				return err
			}
			if err := atMost(ctx, 0); err != nil {
				return err
			}
			v := version()
			if out.json {
				return out.encode(v)
			}
			return out.text("crewhost %s (%s, %s)\n", v.Version, v.Go, v.Platform)
		},
	}
}
