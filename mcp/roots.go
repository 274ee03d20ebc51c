package mcp

import (
	"net/url"
	"path/filepath"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Root is a folder that servers may be told of.
type Root struct {
	Name string // as agents know it
	Path string // physical, absolute
}

// roots are the folders, for a server that the settings let know them: what a
// folder is called on this machine is otherwise no server's business.
func (s *session) roots() (*sdk.ListRootsResult, error) {
	if !s.server.Roots {
		return nil, unansweredf("MCP server %q asked for the folders of this host, which its settings do not allow (roots).", s.server.Name)
	}
	result := &sdk.ListRootsResult{Roots: []*sdk.Root{}}
	for _, r := range s.opts.Roots {
		result.Roots = append(result.Roots, &sdk.Root{Name: r.Name, URI: fileURI(r.Path)})
	}
	return result, nil
}

// fileURI is the URI of an absolute path.
func fileURI(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // a drive
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}
