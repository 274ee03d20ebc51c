package mcp_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"crewhost/config"
	"crewhost/mcp"
	"crewhost/mcp/mcptest"
)

// eras are the flags of a Scripted server of either era.
var eras = map[string]string{"legacy": "-unknown=refuse", "modern": "-modern"}

// eventually waits for what is registered.
func (r rig) eventually(names ...string) {
	r.t.Helper()
	slices.Sort(names)
	eventually(r.t, func() bool { return slices.Equal(r.reg.Names(), names) })
}

// O17, W7: a changed list replaces the one before in the registry: tools that are
// new, changed and gone. On the modern era, the server is asked to tell.
func TestListChanged(t *testing.T) {
	t.Parallel()
	for name, flag := range eras {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, again(stdio("a", mcptest.Scripted, flag, "-list", `[{"name":"relist"},{"name":"old"},{"name":"x","description":"before"}]`))).connected()
			r.call("relist", `{"list":[{"name":"relist"},{"name":"new"},{"name":"x","description":"after"},{"name":"lists"}]}`)
			r.eventually("relist", "new", "x", "lists")
			x, _ := r.reg.Lookup("x")
			if got := x.Definition().Description; got != "after" {
				t.Errorf("x is described as %q", got)
			}
			eventually(t, func() bool { return slices.Equal(r.only().Tools, []string{"lists", "new", "relist", "x"}) })
			r.call("new", "{}")

			// A storm is one refresh or two.
			r.call("relist", `{"times":2000,"list":[{"name":"relist"},{"name":"lists"}]}`)
			r.eventually("relist", "lists")
			if n, err := strconv.Atoi(text(r.call("lists", ""))); err != nil || n > 4 {
				t.Errorf("the list was read %d times, %v", n, err)
			}
		})
	}
}

// The SDK's own server tells both eras, over both transports.
func TestListChangedStandard(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]config.Server{
		"stdio modern": stdio("a", mcptest.Standard, "-tools", "add,echo"),
		"stdio legacy": stdio("a", mcptest.Standard, "-tools", "add,echo", "-legacy"),
		"http modern":  remote("a", mcptest.HTTP(t, "-tools", "add,echo")),
		"http legacy":  remote("a", mcptest.HTTP(t, "-tools", "add,echo", "-legacy")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, settings(server)).connected()
			// The stream for a legacy server's own messages is there a little later.
			// Calls without a pause would put the server's notification off for ever.
			changed := make(chan struct{}, 1)
			defer r.reg.Watch(func() {
				select {
				case changed <- struct{}{}:
				default:
				}
			})()
			eventually(t, func() bool {
				r.call("add", `{"name":"new"}`)
				select {
				case <-changed:
				case <-time.After(500 * time.Millisecond):
				}
				_, ok := r.reg.Lookup("new")
				return ok
			})
			r.call("new", "{}")
		})
	}
}

// What a server offers besides tools may change too, and whoever wants to know is
// told, in each era and over each transport.
func TestOffersChanged(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]config.Server{
		"stdio modern": stdio("a", mcptest.Standard, "-tools", "add", "-contents"),
		"stdio legacy": stdio("a", mcptest.Standard, "-tools", "add", "-contents", "-legacy"),
		"http modern":  remote("a", mcptest.HTTP(t, "-tools", "add", "-contents")),
		"http legacy":  remote("a", mcptest.HTTP(t, "-tools", "add", "-contents", "-legacy")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := make(chan struct{}, 1)
			r := startWith(t, settings(server), mcp.Options{OnOffers: func() {
				select {
				case told <- struct{}{}:
				default:
				}
			}}).connected()
			for _, kind := range []string{"resource", "prompt"} {
				n := 0
				eventually(t, func() bool { // the stream of a legacy server is there a little later
					n++
					r.call("add", fmt.Sprintf(`{"name":"new%d","kind":%q}`, n, kind))
					select {
					case <-told:
						return true
					case <-time.After(50 * time.Millisecond):
						return false
					}
				})
			}
		})
	}
}

// W7: a list that can't be read, or that would take a tool away because its
// definition is broken, leaves the one before, with one warning each.
func TestRefreshFails(t *testing.T) {
	t.Parallel()
	for name, flag := range eras {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := again(stdio("a", mcptest.Scripted, flag, "-list", `[{"name":"relist"},{"name":"x"}]`))
			cfg.Limits.SchemaBytes = 1000
			r := start(t, cfg).connected()
			large := `{"name":"%s","inputSchema":{"type":"object","title":"` + strings.Repeat("y", 1000) + `"}}`
			for i, tt := range []struct{ arguments, warning string }{
				{`{"broken":true,"list":[{"name":"other"}]}`, "no list today"},
				{`{"list":{"name":"other"}}`, "could not be read again"},
				{`{"list":[{"name":"other"},` + fmt.Sprintf(large, "x") + `]}`, `the definition of the tool "x" can't be used (too_large)`},
			} {
				r.call("relist", tt.arguments)
				eventually(t, func() bool {
					warnings := slices.DeleteFunc(r.only().Warnings, func(w string) bool { return !strings.Contains(w, "could not be read again") })
					return len(warnings) == i+1 && strings.Contains(warnings[i], tt.warning)
				})
				if got := r.reg.Names(); !slices.Equal(got, []string{"relist", "x"}) {
					t.Errorf("%.40s: registered %q", tt.arguments, got)
				}
			}
			// Of what is new, what can't be used is lost alone.
			r.call("relist", `{"list":[{"name":"other"},`+fmt.Sprintf(large, "y")+`,{"name":"x"}]}`)
			r.eventually("other", "x")
			eventually(t, func() bool { return len(r.only().Skipped) == 1 })
		})
	}
}

// O12: a name that one server has held is not given to another in mid-run, and
// comes back to the first; a new name is of whoever offers it first.
func TestListChangedCollisions(t *testing.T) {
	t.Parallel()
	const first = `[{"name":"relist"},{"name":"shared"}]`
	r := startWith(t, again(
		stdio("a", mcptest.Scripted, "-list", first),
		stdio("b", mcptest.Standard, "-tools", "shared,own"),
	), mcp.Options{}).connected()
	if s := r.Reports()[1].Skipped; len(s) != 1 || s[0].Holder != `server "a"` {
		t.Errorf("skipped at the start: %v", s)
	}
	r.call("relist", `{"list":[{"name":"relist"},{"name":"own"}]}`)
	r.eventually("relist", "own") // shared is gone
	eventually(t, func() bool { return len(r.Reports()[0].Skipped) == 1 })
	if s := r.Reports()[0].Skipped[0]; s.Tool != "own" || s.Reason != mcp.ReasonCollision || s.Holder != `server "b"` {
		t.Errorf("skipped: %+v", s)
	}
	r.call("relist", `{"list":`+first+`}`)
	r.eventually("relist", "own", "shared")
	if shared, _ := r.reg.Lookup("shared"); shared.Definition().Server != "a" {
		t.Errorf("shared is of %q", shared.Definition().Server)
	}
	eventually(t, func() bool { return len(r.Reports()[0].Skipped) == 0 })
}

// O12: nothing changes about built-ins.
func TestListChangedKeepsBuiltIns(t *testing.T) {
	t.Parallel()
	r := start(t, again(stdio("a", mcptest.Scripted, "-list", `[{"name":"relist"}]`))).connected()
	if err := r.reg.Add(builtin("held")); err != nil {
		t.Fatal(err)
	}
	r.call("relist", `{"list":[{"name":"held"},{"name":"relist"}]}`)
	eventually(t, func() bool { return len(r.only().Skipped) == 1 })
	if s := r.only().Skipped[0]; s.Holder != "a built-in tool" {
		t.Errorf("%+v", s)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if got := r.reg.Names(); !slices.Equal(got, []string{"held"}) {
		t.Errorf("after Close: %q", got)
	}
}

// O17: a list with a time to live is read again after that, when it is used.
func TestTTL(t *testing.T) {
	t.Parallel()
	r := start(t, settings(stdio("a", mcptest.Scripted, "-modern", "-ttl", "1", "-list", `[{"name":"lists"},{"name":"relist"}]`))).connected()
	eventually(t, func() bool { return text(r.call("lists", "")) != "1" })
	// Without one, it is read when it has changed.
	r = start(t, settings(stdio("a", mcptest.Scripted, "-modern", "-list", `[{"name":"lists"}]`))).connected()
	for range 50 {
		if got := text(r.call("lists", "")); got != "1" {
			t.Fatalf("the list was read %s times", got)
		}
	}
}

// K41: a server that has forgotten the session may have other tools by now.
func TestListAfterForgottenSession(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	session := 0
	url := serve(t, func(w http.ResponseWriter, r *http.Request, m message) {
		mu.Lock()
		defer mu.Unlock()
		switch id := r.Header.Get("Mcp-Session-Id"); {
		case m.Method == "initialize":
			session++
			w.Header().Set("Mcp-Session-Id", fmt.Sprint(session))
		case m.Method == "tools/call" && id == "1", id != "" && id != fmt.Sprint(session):
			w.WriteHeader(http.StatusNotFound)
			return
		}
		reply(w, m, map[string]string{
			"initialize": `{"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`,
			"ping":       `{"result":{}}`,
			"tools/list": `{"result":{"tools":[{"name":"x"},{"name":"of_session_` + fmt.Sprint(session) + `"}]}}`,
			"tools/call": `{"result":{"content":[]}}`,
		})
	})
	r := start(t, settings(remote("a", url))).connected()
	r.eventually("x", "of_session_1")
	r.call("x", "{}")
	r.eventually("x", "of_session_2")
}

// A modern server whose stream breaks off, with an id that it can't be resumed by,
// is asked again; the session goes on.
func TestSubscriptionBreaks(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	subscribed := 0
	url := serve(t, func(w http.ResponseWriter, r *http.Request, m message) {
		switch m.Method {
		case "subscriptions/listen":
			mu.Lock()
			subscribed++
			first := subscribed == 1
			mu.Unlock()
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "id: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{\"notifications\":{}}}\n\n")
			_ = http.NewResponseController(w).Flush()
			if !first {
				<-r.Context().Done()
			}
		default:
			reply(w, m, map[string]string{
				"server/discover": `{"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}}`,
				"tools/list":      `{"result":{"resultType":"complete","tools":[{"name":"x"}]}}`,
				"tools/call":      `{"result":{"resultType":"complete","content":[]}}`,
			})
		}
	})
	r := start(t, again(remote("a", url))).connected()
	eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return subscribed == 2
	})
	r.call("x", "{}")
	if report := r.only(); report.State != mcp.StateConnected || report.Reconnects != 0 {
		t.Errorf("%+v", report)
	}
}

// O17: a subscription that ends is made again, and what was missed meanwhile is
// found.
func TestSubscriptionEnds(t *testing.T) {
	t.Parallel()
	r := start(t, settings(stdio("a", mcptest.Scripted, "-modern", "-list", `[{"name":"lists"},{"name":"relist"},{"name":"unlisten"},{"name":"log"}]`))).connected()
	r.call("unlisten", "")
	eventually(t, func() bool { return strings.Count(text(r.call("log", "")), "subscriptions/listen") == 2 })
	eventually(t, func() bool { return text(r.call("lists", "")) == "2" })
}
