package permission_test

import (
	"context"
	"sync"
	"testing"

	"crewhost/tools"
	"crewhost/tools/permission"
)

// constant answers everything alike.
type constant struct{ answer permission.Answer }

func (c constant) Approve(context.Context, permission.Question) (permission.Answer, error) {
	return c.answer, nil
}

func (c constant) Always() permission.Answer { return c.answer }

// What every call of a tool is refused for is known before the first.
func TestProspect(t *testing.T) {
	reg := registry(t, echo("denied", ""), echo("half_denied", ""), echo("asked", ""), echo("half_asked", ""), echo("allowed", ""), echo("half_allowed", ""),
		echo("other", ""), echo("of_server", "s"))
	policy := mustPolicy(t, permission.Config{
		Deny:  []permission.Rule{{Pattern: "denied"}, {Pattern: "half_denied:a=b"}},
		Ask:   []permission.Rule{{Pattern: "asked"}, {Pattern: "half_asked:a=b"}},
		Allow: []permission.Rule{{Pattern: "denied"}, {Pattern: "asked"}, {Pattern: "half_*"}, {Pattern: "allowed"}, {Pattern: "half_allowed:a=b"}, {Pattern: "mcp__s__*"}},
	})
	best := map[string]permission.Verdict{
		"denied": permission.Deny, "half_denied": permission.Allow, "asked": permission.Ask, "half_asked": permission.Allow, "allowed": permission.Allow,
		"half_allowed": permission.Allow, "other": permission.Ask, "of_server": permission.Allow, "gone": permission.Deny,
	}
	person := approver(func(context.Context, permission.Question) (permission.Answer, error) {
		t.Error("nobody is asked yet")
		return permission.Answer{}, nil
	})
	for name, tt := range map[string]struct {
		approver permission.Approver
		ask      permission.Verdict
	}{
		"somebody": {person, permission.Ask},
		"nobody":   {nil, permission.Deny},
		"yes":      {constant{permission.Answer{Allow: true}}, permission.Allow},
		"no":       {constant{}, permission.Deny},
	} {
		guard := permission.NewGuard(reg, policy, tt.approver)
		for tool, want := range best {
			if want == permission.Ask {
				want = tt.ask
			}
			if got := guard.Prospect("", tool); got != want {
				t.Errorf("%s, %s: %s, want %s", name, tool, got, want)
			}
		}
	}
	if got := permission.NewGuard(reg, mustPolicy(t, permission.Config{Default: permission.Deny}), person).Prospect("", "other"); got != permission.Deny {
		t.Errorf("got %s", got)
	}
	var readers tools.Registry
	if err := readers.Add(resourceful{echo("reader", "")}); err != nil {
		t.Fatal(err)
	}
	if got := permission.NewGuard(&readers, policy, nil).Prospect("", "reader"); got != permission.Allow {
		t.Errorf("got %s: some rule speaks of some server", got)
	}
	if got := permission.NewGuard(reg, nil, person).Prospect("", "other"); got != permission.Ask {
		t.Errorf("got %s", got)
	}
}

// Persons behind different clients don't wait for each other.
func TestGuardConcurrent(t *testing.T) {
	rendezvous := make(chan struct{})
	meet := approver(func(ctx context.Context, _ permission.Question) (permission.Answer, error) {
		select {
		case rendezvous <- struct{}{}:
		case <-rendezvous:
		case <-ctx.Done():
			return permission.Answer{}, ctx.Err()
		}
		return permission.Answer{Allow: true}, nil
	})
	guard := permission.NewGuard(registry(t, echo("echo", "")), nil, meet)
	guard.Concurrent = true
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if res, err := guard.Call(t.Context(), tools.Call{Name: "echo"}); err != nil || res.IsError {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
	wg.Wait()
}
