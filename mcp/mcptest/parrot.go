package mcptest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// parrotTools begins the names of tools that repeat what they should keep to
// themselves: the headers of the request, as JSON and in base64. A tool whose name
// ends in _fails does so in a failure.
const parrotTools = "parrot_"

func parrotTool(_ *state, _ context.Context, req *mcp.CallToolRequest) *mcp.CallToolResult {
	header := http.Header{}
	if req.Extra != nil {
		header = req.Extra.Header
	}
	data, err := json.Marshal(map[string]any{"headers": header, "arguments": req.Params.Arguments})
	if err != nil {
		return failure(err.Error())
	}
	said := string(data) + " " + base64.StdEncoding.EncodeToString(data)
	if strings.HasSuffix(req.Params.Name, "_fails") {
		return failure(said)
	}
	return text(said)
}
