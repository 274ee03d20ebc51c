package database

import (
	"encoding/json"
	"testing"

	"crewhost/tools/mount"
	"crewhost/tools/native"
	"crewhost/tools/native/nativetest"
)

// bench is a bench of the tools with a configuration; its mounts are the bench's.
func bench(t testing.TB, cfg Config) nativetest.Bench {
	t.Helper()
	return nativetest.New(t, func(fsys *mount.FS) []native.Tool {
		cfg.FS = fsys
		return Tools(cfg)
	})
}

func mustJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}
