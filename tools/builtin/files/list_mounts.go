package files

import (
	"context"
	"fmt"
	"path"
	"strings"

	"crewhost/tools"
	"crewhost/tools/mount"
	"crewhost/tools/native"
)

const listMountsSchema = `{
  "type": "object",
  "properties": {},
  "additionalProperties": false
}`

func listMounts(fsys *mount.FS) native.Tool {
	return native.Tool{
		Name: "list_mounts", Title: "List mounts",
		Description: "Lists the folders that are mounted, with what may be done in them, and the folder that relative paths are in.",
		Schema:      listMountsSchema, Effect: native.ReadOnly,
		Run: func(_ context.Context, _ tools.Call, args *native.Arguments) (tools.Result, error) {
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			var b strings.Builder
			for _, m := range fsys.Mounts() {
				fmt.Fprintf(&b, "%s: %s\n", m.Virtual, inWords(m.Rights))
				for _, s := range m.Subs {
					fmt.Fprintf(&b, "%s: %s\n", path.Join(m.Virtual, s.Path), inWords(s.Rights))
				}
			}
			switch {
			case b.Len() == 0:
				b.WriteString("[nothing is mounted here: no file can be read or written]")
			case fsys.Base() != "":
				fmt.Fprintf(&b, "[relative paths are in %s]", fsys.Base())
			default:
				b.WriteString("[paths must begin with one of these]")
			}
			return tools.Text(b.String()), nil
		},
	}
}

// inWords says what rights allow.
func inWords(r mount.Rights) string {
	switch r {
	case mount.ReadWrite:
		return "read, write and delete (rw)"
	case mount.NoDelete:
		return "read and write, no deleting (rwnd)"
	case mount.ReadOnly:
	}
	return "read only (ro)"
}
