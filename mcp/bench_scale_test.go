package mcp_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"crewhost/config"
	"crewhost/mcp/mcptest"
	"crewhost/tools"
)

// BenchmarkScale connects many servers of fifty tools each: 200 are 10,000 tools.
// All four figures should stay as they are from one size to the next, since time
// and memory are to grow with the number of servers and no faster: the startup,
// the host's memory, a listing of all tools, and one refresh, from the call that
// changes a server's list to the registry's having it.
func BenchmarkScale(b *testing.B) {
	const each = 50
	for _, servers := range []int{25, 50, 100, 200} {
		b.Run(fmt.Sprint(servers), func(b *testing.B) {
			var cfg []config.Server
			for i := range servers {
				var names []string
				for j := range each {
					names = append(names, fmt.Sprintf("tool_%d_%d", i, j))
				}
				if i == 0 {
					names[0] = "add"
				}
				cfg = append(cfg, stdio(fmt.Sprintf("s%d", i), mcptest.Standard, "-tools", strings.Join(names, ",")))
			}
			var startup, listing, refresh time.Duration
			var memory uint64
			rounds := 0
			for b.Loop() {
				rounds++
				before := heap()
				began := time.Now()
				r := start(b, patient(settings(cfg...))).connected()
				startup += time.Since(began)
				memory += heap() - before

				began = time.Now()
				if n := len(r.reg.Definitions()); n != servers*each {
					b.Fatalf("%d tools", n)
				}
				listing += time.Since(began)

				began = time.Now()
				add, _ := r.reg.Lookup("add")
				if _, err := add.Call(b.Context(), tools.Call{Arguments: []byte(`{"name":"fresh"}`)}); err != nil {
					b.Fatal(err)
				}
				for {
					if _, ok := r.reg.Lookup("fresh"); ok {
						break
					}
					runtime.Gosched()
				}
				refresh += time.Since(began)
				if err := r.Close(); err != nil {
					b.Fatal(err)
				}
			}
			per := func(total float64, n int) float64 { return total / float64(rounds) / float64(n) }
			b.ReportMetric(per(float64(startup.Microseconds())/1000, servers), "ms-startup/server")
			b.ReportMetric(per(float64(memory)/1024, servers*each), "KiB/tool")
			b.ReportMetric(per(float64(listing.Nanoseconds())/1000, servers*each), "us-listing/tool")
			b.ReportMetric(per(float64(refresh.Microseconds())/1000, 1), "ms-refresh")
		})
	}
}

// patient gives each server time enough on a machine that starts 200.
func patient(cfg config.MCP) config.MCP {
	cfg.ConnectTimeout = 5 * time.Minute
	cfg.ProbeTimeout = time.Minute
	return cfg
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
