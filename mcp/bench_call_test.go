package mcp_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"crewhost/config"
	"crewhost/mcp"
	"crewhost/mcp/mcptest"
	"crewhost/tools"
)

// BenchmarkCallOverhead calls a tool of one server through this package and
// through the bare SDK by turns, one call at a time and 32 at once. "ratio" is the
// median time here over the SDK's: the aim is at most 1.1.
func BenchmarkCallOverhead(b *testing.B) {
	command, args := mcptest.Command(mcptest.Standard, "-tools", "echo")
	url := mcptest.HTTP(b, "-tools", "echo")
	inMemory := func() sdk.Transport {
		server := sdk.NewServer(&sdk.Implementation{Name: "bench"}, nil)
		sdk.AddTool(server, &sdk.Tool{Name: "echo"}, func(_ context.Context, _ *sdk.CallToolRequest, in struct {
			Text string `json:"text"`
		}) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: in.Text}}}, nil, nil
		})
		there, here := sdk.NewInMemoryTransports()
		session, err := server.Connect(b.Context(), there, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = session.Close() })
		return here
	}
	for _, tt := range []struct {
		name      string
		server    config.Server
		transport func() sdk.Transport
	}{
		{"stdio", stdio("a", mcptest.Standard, "-tools", "echo"), func() sdk.Transport { return &sdk.CommandTransport{Command: exec.Command(command, args...)} }},
		{"memory", stdio("a", mcptest.Standard), inMemory},
		{"http", remote("a", url), func() sdk.Transport { return &sdk.StreamableClientTransport{Endpoint: url} }},
		{"gateway", remote("a", url), func() sdk.Transport { return &sdk.StreamableClientTransport{Endpoint: url} }},
	} {
		opts := mcp.Options{Name: "bench"}
		cfg, name := settings(tt.server), "echo"
		if tt.name == "gateway" {
			var end func()
			name, end = forAgents.route(&cfg, &opts, name)
			b.Cleanup(end)
		}
		if tt.name == "memory" {
			opts = opts.InMemory(inMemory)
		}
		var reg tools.Registry
		sessions, err := mcp.Startup(b.Context(), cfg, &reg, opts)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = sessions.Close() })
		tool, ok := reg.Lookup(name)
		if !ok {
			b.Fatal(sessions.Reports()[0].Err)
		}
		arguments := json.RawMessage(`{"text":"hello"}`)
		ours := func() {
			if _, err := tool.Call(b.Context(), tools.Call{Arguments: arguments}); err != nil {
				b.Error(err)
			}
		}
		client := sdk.NewClient(&sdk.Implementation{Name: "bench"}, nil)
		session, err := client.Connect(context.Background(), tt.transport(), nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = session.Close() })
		if _, err := session.ListTools(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
		bare := func() {
			if _, err := session.CallTool(b.Context(), &sdk.CallToolParams{Name: "echo", Arguments: arguments}); err != nil {
				b.Error(err)
			}
		}
		b.Run(tt.name+"/serial", func(b *testing.B) { compare(b, 1, ours, bare) })
		b.Run(tt.name+"/parallel", func(b *testing.B) { compare(b, 32, ours, bare) })
	}
}

// compare runs rounds of calls, ours and the SDK's by turns, each round on so
// many goroutines, and reports the medians and their ratio.
func compare(b *testing.B, parallel int, ours, bare func()) {
	const calls = 64
	round := func(call func()) time.Duration {
		var running sync.WaitGroup
		began := time.Now()
		for range parallel {
			running.Go(func() {
				for range calls / parallel {
					call()
				}
			})
		}
		running.Wait()
		return time.Since(began) / calls
	}
	round(ours) // both are warm
	round(bare)
	var a, z []time.Duration
	for b.Loop() {
		a = append(a, round(ours))
		z = append(z, round(bare))
	}
	slices.Sort(a)
	slices.Sort(z)
	ourMedian, bareMedian := a[len(a)/2], z[len(z)/2]
	b.ReportMetric(float64(ourMedian)/float64(bareMedian), "ratio")
	b.ReportMetric(float64(ourMedian.Microseconds()), "us/call")
	b.ReportMetric(float64(bareMedian.Microseconds()), "us/bare")
}
