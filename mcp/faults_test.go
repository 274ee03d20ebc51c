package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"crewhost/config"
	"crewhost/mcp"
	"crewhost/mcp/mcptest"
	"crewhost/tools"
)

// A fault is a row of the table of misbehaving servers: what the server does, and
// what the host makes of it. Each row has a host of its own, a child process, so
// that its memory can be measured; the rows are in faults_rows_test.go.
type fault struct {
	does   string // what the server does
	cites  string // the cases and requirements
	server func(*hazard) config.Server
	with   func(*config.MCP) // settings other than hazardous has

	tool string // the tool that is called once it is connected; empty: none
	args string // of the call

	code tools.Code // of the error of the connect or the call; empty: there is none
	says string     // a pattern of the error, the call's result, or the report
	mib  int        // of memory that the host may take; 0: 48
	long bool       // many bytes have to pass, which the race detector makes slow
	ends bool       // the session ends with it; else it answers a ping afterwards
}

// outcome is what a row came to.
type outcome struct {
	Code   tools.Code
	Says   string
	Took   time.Duration // of the connect and the call
	Closed time.Duration // of the close
	MiB    int           // that the host took of the system at most
	Ping   string        // the error of a ping after it
	Leak   string        // goroutines that are left
}

// hazardous are the settings of the rows: a server of theirs has little time.
func hazardous(s config.Server) config.MCP {
	cfg := settings(s)
	cfg.ProbeTimeout = 300 * time.Millisecond
	cfg.ShutdownTimeout = 300 * time.Millisecond
	return cfg
}

// hazard is where a row's servers are made.
type hazard struct {
	closers []func()
}

func (h *hazard) onClose(f func()) { h.closers = append(h.closers, f) }

// run plays a row in this process. By says how the server is reached: see byWay.
func (f fault) run(ctx context.Context, by way) outcome {
	h := new(hazard)
	cfg := hazardous(f.server(h))
	if f.long {
		cfg.ConnectTimeout, cfg.ToolTimeout = 30*time.Second, 30*time.Second
	}
	if f.with != nil {
		f.with(&cfg)
	}
	opts := mcp.Options{Name: "test", Version: "1", OnProgress: func(mcp.Progress) {}}
	tool, end := by.route(&cfg, &opts, f.tool)
	h.onClose(end)
	f.tool = tool
	var o outcome
	reg := new(tools.Registry)
	began := time.Now()
	all, err := mcp.Startup(ctx, cfg, reg, opts)
	report := all.Reports()[0]
	switch {
	case err != nil:
		o.Says = err.Error()
	case report.Err != nil:
		o.Code, o.Says = tools.CodeOf(report.Err), report.Err.Error()
	case f.tool != "":
		o.Code, o.Says = f.call(ctx, reg)
	default:
		var lines []string
		for _, r := range all.Reports() {
			lines = append(lines, r.Warnings...)
			for _, skip := range r.Skipped {
				lines = append(lines, skip.String())
			}
		}
		o.Says = fmt.Sprintf("%s, %d tools: %s", report.State, len(report.Tools), strings.Join(lines, "; "))
	}
	o.Took = time.Since(began)
	if !f.ends {
		if _, err := all.Ping(ctx, report.Name); err != nil {
			o.Ping = err.Error()
		}
	}
	began = time.Now()
	if err := all.Close(); err != nil {
		o.Says += "; closing: " + err.Error()
	}
	o.Closed = time.Since(began)
	for _, c := range h.closers {
		c()
	}
	if err := goleak.Find(); err != nil {
		o.Leak = err.Error()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	o.MiB = int(m.Sys >> 20)
	return o
}

func (f fault) call(ctx context.Context, reg *tools.Registry) (tools.Code, string) {
	tool, ok := reg.Lookup(f.tool)
	if !ok {
		return "", fmt.Sprintf("no tool %q among %q", f.tool, reg.Names())
	}
	res, err := tool.Call(ctx, tools.Call{Name: f.tool, Arguments: json.RawMessage(f.args)})
	if err != nil {
		return tools.CodeOf(err), err.Error()
	}
	says := text(res)
	if res.IsError {
		says = "failure: " + says
	}
	return "", says
}

// faultHost is the child process of a row.
func faultHost(does string, by way) int {
	for _, f := range faults {
		if f.does == does {
			o := f.run(context.Background(), by)
			if len(o.Says) > 2000 {
				o.Says = o.Says[:2000]
			}
			if json.NewEncoder(os.Stdout).Encode(o) != nil {
				return 1
			}
			return 0
		}
	}
	return 2
}

// host runs a row in a child process.
func (f fault) host(ctx context.Context, by way) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return outcome{}, err
	}
	cmd := exec.CommandContext(ctx, self, faultArg, f.does, string(by))
	cmd.Env = append(os.Environ(), mcptest.Environ()...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return outcome{}, fmt.Errorf("the host broke down: %w: %.3000s", err, stderr.String())
	}
	var o outcome
	return o, errors.Join(json.Unmarshal(out, &o))
}

// Nothing that a server does hurts the host: each row has its code, its line, and
// the time and memory that the host keeps to. Run with -v to read the table.
func TestFaults(t *testing.T) {
	if len(faults) < 40 {
		t.Errorf("%d rows", len(faults))
	}
	judged(t, faults, direct)
}

// judged plays rows, each in a process of its own, and judges what they came to.
func judged(t *testing.T, faults []fault, by way) {
	outcomes := make([]outcome, len(faults))
	errs := make([]error, len(faults))
	var hosts sync.WaitGroup
	turns := make(chan struct{}, 6) // most of them wait most of the time
	for i, f := range faults {
		hosts.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			outcomes[i], errs[i] = f.host(t.Context(), by)
		})
	}
	hosts.Wait()
	for i, f := range faults {
		t.Run(f.does, func(t *testing.T) {
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			f.judge(t, outcomes[i])
			if says := outcomes[i].Says; by == forAgents && (strings.Contains(says, "127.0.0.1") || strings.Contains(says, "localhost")) {
				t.Errorf("an agent is told where the server is: %s", says)
			}
		})
	}
}

func (f fault) judge(t *testing.T, o outcome) {
	code := string(o.Code)
	if code == "" {
		code = "survived"
	}
	t.Logf("%s | %s | took %v, closed in %v | %d MiB\n    %s", f.cites, code,
		o.Took.Round(time.Millisecond), o.Closed.Round(time.Millisecond), o.MiB, o.Says)
	if o.Code != f.code {
		t.Errorf("the code is %q, want %q", o.Code, f.code)
	}
	if !regexp.MustCompile(f.says).MatchString(o.Says) {
		t.Errorf("it says %q, want %q", o.Says, f.says)
	}
	if o.Code != "" && strings.ContainsAny(o.Says, "\n\r\x1b") {
		t.Errorf("it says more than a line: %q", o.Says)
	}
	within, mib := 8*time.Second, f.mib
	if f.long {
		within = 40 * time.Second
	}
	if o.Took > within || o.Closed > 8*time.Second {
		t.Errorf("took %v, closed in %v", o.Took, o.Closed)
	}
	if mib == 0 {
		mib = 48
	}
	if o.MiB > mib {
		t.Errorf("took %d MiB, %d are allowed", o.MiB, mib)
	}
	if o.Ping != "" || o.Leak != "" {
		t.Errorf("ping: %s; left: %s", o.Ping, o.Leak)
	}
}
