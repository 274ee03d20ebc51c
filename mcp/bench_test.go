package mcp_test

import (
	"context"
	"fmt"
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

// BenchmarkStartup connects ten trivial servers, by turns with Startup and with the bare
// SDK, which connects them at once and lists their tools. "ratio" is Startup's time over the SDK's: the
// aim is at most 1.3. Times are medians, as a busy machine delays one startup or another.
func BenchmarkStartup(b *testing.B) {
	const servers = 10
	for name, guard := range map[string][]string{"plain": nil, "guarded": {selfPath(), guardArg}} {
		b.Run(name, func(b *testing.B) {
			var cfg []config.Server
			for i := range servers {
				cfg = append(cfg, stdio(fmt.Sprintf("s%d", i), mcptest.Standard, "-tools", fmt.Sprintf("t%d", i)))
			}
			var ours, bare []time.Duration
			bareStartup(b, servers) // whoever is first pays for a cold cache
			for b.Loop() {
				began := time.Now()
				sessions, err := mcp.Startup(b.Context(), settings(cfg...), new(tools.Registry), mcp.Options{Name: "bench", Guard: guard})
				ours = append(ours, time.Since(began))
				if err != nil {
					b.Fatal(err)
				}
				for _, r := range sessions.Reports() {
					if r.State != mcp.StateConnected {
						b.Fatal(r.Err)
					}
				}
				if err := sessions.Close(); err != nil {
					b.Fatal(err)
				}
				bare = append(bare, bareStartup(b, servers))
			}
			b.ReportMetric(median(ours)/median(bare), "ratio")
			b.ReportMetric(median(ours), "ms/startup")
			b.ReportMetric(median(bare), "ms/bare")
		})
	}
}

// median is that of times, in milliseconds.
func median(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)/2].Microseconds()) / 1000
}

// bareStartup is what the SDK takes for the same.
func bareStartup(b *testing.B, servers int) time.Duration {
	var running sync.WaitGroup
	sessions := make([]*sdk.ClientSession, servers)
	began := time.Now()
	for i := range servers {
		running.Go(func() {
			command, args := mcptest.Command(mcptest.Standard, "-tools", fmt.Sprintf("t%d", i))
			client := sdk.NewClient(&sdk.Implementation{Name: "bench"}, nil)
			session, err := client.Connect(context.Background(), &sdk.CommandTransport{Command: exec.Command(command, args...)}, nil)
			if err != nil {
				b.Error(err)
				return
			}
			sessions[i] = session
			if _, err := session.ListTools(context.Background(), nil); err != nil {
				b.Error(err)
			}
		})
	}
	running.Wait()
	took := time.Since(began)
	for _, session := range sessions {
		running.Go(func() {
			if session != nil {
				_ = session.Close()
			}
		})
	}
	running.Wait()
	return took
}

func selfPath() string {
	command, _ := mcptest.Command(mcptest.Standard)
	return command
}

// BenchmarkCall is one call over stdio and back.
func BenchmarkCall(b *testing.B) {
	r := start(b, settings(stdio("a", mcptest.Standard, "-tools", "echo"))).connected()
	tool, _ := r.reg.Lookup("echo")
	args := []byte(`{"text":"hello"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tool.Call(b.Context(), tools.Call{Arguments: args}); err != nil {
			b.Fatal(err)
		}
	}
}
