package server_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"crewhost/mcp/server"
	"crewhost/tools"
)

// sdkClient is the SDK's client of a server over pipes, of an era that version says.
func sdkClient(t testing.TB, s *server.Server, version string, opts *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.ServeStdio(context.Background(), inR, outW) }()
	client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, opts)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: outR, Writer: inW}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		session.Close()
		inW.Close()
		if err := <-done; err != nil {
			t.Errorf("serving: %v", err)
		}
		outW.Close()
	})
	return session
}

// The SDK's client gets on with the server, in every version that both speak.
func TestSDKClient(t *testing.T) {
	lib := new(library)
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
		t.Run(version, func(t *testing.T) {
			g, reg := guard(t, append(askers(), echo("echo"), named("slow", func(ctx context.Context, c tools.Call) (tools.Result, error) {
				if c.Progress != nil {
					c.Progress(tools.Progress{Done: 1, Total: 2, Message: "half"})
				}
				<-ctx.Done()
				return tools.Result{}, ctx.Err()
			})))
			s := serverOf(t, server.Config{Guard: g, Resources: lib, Prompts: lib, Budgets: server.Budgets{PageSize: 2}})
			changed, progress, updated := make(chan struct{}, 10), make(chan float64, 10), make(chan string, 10)
			session := sdkClient(t, s, version, &mcp.ClientOptions{
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
				},
				ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
				ResourceUpdatedHandler:      func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { updated <- r.Params.URI },
				ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Progress },
			})
			ctx := t.Context()
			var names []string
			for tool, err := range session.Tools(ctx, nil) {
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, tool.Name)
			}
			if got := strings.Join(names, " "); got != "all echo log name roots sample short slow twice" {
				t.Errorf("the tools are %s", got)
			}
			call := func(name string) string {
				t.Helper()
				res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: map[string]any{}})
				if err != nil {
					t.Fatal(err)
				}
				return res.Content[0].(*mcp.TextContent).Text
			}
			if got := call("echo"); got != "{}" {
				t.Errorf("echo says %s", got)
			}
			if got := call("twice"); got != "accept Ada, accept Ada" {
				t.Errorf("twice says %s", got)
			}
			if got := call("roots"); !strings.Contains(got, `"roots":[]`) {
				t.Errorf("roots says %s", got)
			}
			res, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "mem:///a"})
			if err != nil || len(res.Contents) != 2 || res.Contents[0].Text != "<a>" {
				t.Errorf("reading: %v, %v", res, err)
			}
			text, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "greet", Arguments: map[string]string{"who": "you"}})
			if err != nil || text.Messages[0].Content.(*mcp.TextContent).Text != "Hello, you" {
				t.Errorf("a prompt: %v, %v", text, err)
			}
			words, err := session.Complete(ctx, &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "greet"}, Argument: mcp.CompleteParamsArgument{Name: "who", Value: "y"}})
			if err != nil || len(words.Completion.Values) != 4 {
				t.Errorf("completion: %v, %v", words, err)
			}

			cctx, cancel := context.WithCancel(ctx)
			params := &mcp.CallToolParams{Name: "slow", Arguments: map[string]any{}}
			params.SetProgressToken("tok")
			failed := make(chan error, 1)
			go func() {
				_, err := session.CallTool(cctx, params)
				failed <- err
			}()
			await(t, progress)
			cancel()
			if err := await(t, failed); err == nil {
				t.Error("a call that is cancelled succeeds")
			}

			if err := session.Subscribe(ctx, &mcp.SubscribeParams{URI: "mem:///a"}); err != nil {
				t.Fatal(err)
			}
			stop := time.Now().Add(patience)
			for heard := false; !heard; { // the modern client doesn't wait until its stream is there
				lib.change("mem:///a")
				select {
				case uri := <-updated:
					heard = uri == "mem:///a"
				case <-time.After(20 * time.Millisecond):
					if time.Now().After(stop) {
						t.Fatal("the client does not hear of the resource")
					}
				}
			}
			if err := reg.Add(echo("new")); err != nil {
				t.Fatal(err)
			}
			s.Refresh()
			await(t, changed)
		})
	}
}

func await[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("nothing comes")
	}
	panic("unreachable")
}
