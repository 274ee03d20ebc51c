package mcp_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/mcp"
	"crewhost/mcp/mcptest"
	"crewhost/tools"
)

// respondent is a person who has one answer to everything, and remembers what
// was asked.
type respondent struct {
	answer mcp.Answer
	err    error
	wait   chan struct{} // if set, answers are given once it is closed

	mu    sync.Mutex
	asked []mcp.Question
}

func (r *respondent) Elicit(ctx context.Context, q mcp.Question) (mcp.Answer, error) {
	r.mu.Lock()
	r.asked = append(r.asked, q)
	r.mu.Unlock()
	if r.wait != nil {
		select {
		case <-r.wait:
		case <-ctx.Done():
			return mcp.Answer{}, ctx.Err()
		}
	}
	return r.answer, r.err
}

func (r *respondent) questions() []mcp.Question {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// accepting accepts with values, given as name, value, name, value…
func accepting(pairs ...string) *respondent {
	values := map[string]secret.Text{}
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = secret.Literal(pairs[i+1])
	}
	return &respondent{answer: mcp.Answer{Action: mcp.Accept, Values: values}}
}

// everyway runs a test on both eras over every transport. Server makes the
// settings of a Standard server with these tools.
func everyway(t *testing.T, test func(t *testing.T, server func(toolNames string) config.Server)) {
	for _, era := range []string{"modern", "legacy"} {
		var flags []string
		if era == "legacy" {
			flags = []string{"-legacy"}
		}
		t.Run(era+" stdio", func(t *testing.T) {
			t.Parallel()
			test(t, func(names string) config.Server {
				return stdio("a", mcptest.Standard, append([]string{"-tools", names, "-contents"}, flags...)...)
			})
		})
		t.Run(era+" http", func(t *testing.T) {
			t.Parallel()
			test(t, func(names string) config.Server {
				return remote("a", mcptest.HTTP(t, append([]string{"-tools", names, "-contents"}, flags...)...))
			})
		})
	}
	t.Run("legacy sse", func(t *testing.T) {
		t.Parallel()
		test(t, func(names string) config.Server {
			s := remote("a", mcptest.HTTP(t, "-tools", names, "-contents", "-legacy", "-sse"))
			s.Transport = config.TransportSSE
			return s
		})
	})
}

const form = `{"type":"object","required":["region","count"],"properties":{` +
	`"zone":{"type":"string","title":"A zone","description":"optional\u202e"},` +
	`"region":{"type":"string","enum":["eu","us"],"enumNames":["Europe","United States"],"default":"us"},` +
	`"count":{"type":"integer","minimum":1,"maximum":5}}}`

// O19: a question reaches a person in its own order, and the answer the server,
// in either era, on either transport.
func TestElicit(t *testing.T) {
	everyway(t, func(t *testing.T, server func(string) config.Server) {
		person := accepting("region", "eu", "count", "3")
		r := startWith(t, settings(server("ask")), mcp.Options{Respondent: person}).connected()
		res := r.call("ask", `{"message":"Which \u202eregion?","schema":`+form+`}`)
		if res.IsError || text(res) != `{"q":{"action":"accept","content":{"count":3,"region":"eu"}}}` {
			t.Fatalf("got %+v", res)
		}
		asked := person.questions()
		if len(asked) != 1 {
			t.Fatalf("asked %d times", len(asked))
		}
		q := asked[0]
		var fields []string
		for _, f := range q.Fields {
			mark := ""
			if f.Required {
				mark = "*"
			}
			fields = append(fields, f.Name+mark+" "+string(f.Kind)+" "+f.Takes()+" "+f.Default)
		}
		want := []string{"zone text  ", "region* choice one of the choices us", "count* integer a whole number, from 1 to 5 "}
		if diff := cmp.Diff(want, fields); diff != "" {
			t.Error(diff)
		}
		if q.Server != "a" || q.Tool != "ask" || q.Message != "Which region?" || q.Fields[0].Title != "A zone" {
			t.Errorf("asked %+v", q)
		}
	})
}

// O19: declining and cancelling reach the server, and it goes on.
func TestElicitDeclined(t *testing.T) {
	everyway(t, func(t *testing.T, server func(string) config.Server) {
		for _, action := range []mcp.Action{mcp.Decline, mcp.Cancel, ""} {
			r := startWith(t, settings(server("ask")), mcp.Options{Respondent: &respondent{answer: mcp.Answer{Action: action}}}).connected()
			want := string(action)
			if want == "" {
				want = "decline"
			}
			if res := r.call("ask", `{"message":"?"}`); res.IsError || text(res) != `{"q":{"action":"`+want+`"}}` {
				t.Errorf("%q: got %+v", action, res)
			}
		}
	})
}

// O19: what the settings declare is the answer where it fits, and is reported;
// the values are shown nowhere.
func TestDeclaredAnswers(t *testing.T) {
	everyway(t, func(t *testing.T, server func(string) config.Server) {
		s := server("ask,capabilities")
		s.Answers = []config.Variable{
			{Name: "region", Value: secret.NewText("•••", "eu")},
			{Name: "count", Value: secret.NewText("${COUNT}", "4", secret.New("4"))},
			{Name: "unused", Value: secret.Literal("x")},
		}
		r := startWith(t, settings(s), mcp.Options{}).connected()
		res := r.call("ask", `{"message":"?","schema":`+form+`}`)
		if res.IsError || text(res) != `{"q":{"action":"accept","content":{"count":4,"region":"eu"}}}` {
			t.Fatalf("got %+v", res)
		}
		line := `a question of the tool "ask" was answered as the settings declare: region=•••, count=${COUNT}`
		if diff := cmp.Diff([]string{line}, r.only().Warnings); diff != "" {
			t.Error(diff)
		}
		if got := text(r.call("capabilities", "")); !strings.Contains(got, `"form":{}`) || strings.Contains(got, `"url"`) || strings.Contains(got, `"sampling"`) {
			t.Errorf("announced %s", got)
		}
		// What is not declared in full is not answered at all.
		for _, schema := range []string{
			strings.Replace(form, `"required":["region"`, `"required":["zone","region"`, 1),
			strings.Replace(form, `"maximum":5`, `"maximum":3`, 1),
			strings.Replace(form, `"eu","us"`, `"me","us"`, 1),
			`{"type":"object","properties":{}}`,
		} {
			res := r.call("ask", `{"message":"How now?","schema":`+schema+`}`)
			if !res.IsError || !strings.Contains(text(res), `"How now?"`) || !strings.Contains(text(res), "Nobody can be asked") {
				t.Errorf("%s: got %+v", schema, res)
			}
		}
	})
}

// O19: where nobody can answer, nothing that would ask is announced, and a server
// that asks all the same gets no answer: the call is a failure that says what was
// asked.
func TestUnanswered(t *testing.T) {
	everyway(t, func(t *testing.T, server func(string) config.Server) {
		r := startWith(t, settings(server("ask,ask_model,ask_roots,capabilities")), mcp.Options{}).connected()
		if got := text(r.call("capabilities", "")); strings.Contains(got, "elicitation") || strings.Contains(got, "sampling") {
			t.Errorf("announced %s", got)
		}
		for tool, args := range map[string]string{
			"ask":       `{"message":"Which region?","schema":` + form + `}`,
			"ask_model": `{"prompt":"?","max_tokens":5}`,
			"ask_roots": `{}`,
		} {
			if res := r.call(tool, args); !res.IsError {
				t.Errorf("%s: got %+v", tool, res)
			}
		}
	})
	r := startWith(t, settings(stdio("a", mcptest.Scripted, "-list", `[{"name":"asks"},{"name":"log"},{"name":"x"}]`, "-reply",
		`{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"Which region?","requestedSchema":`+form+`}}}}`)), mcp.Options{}).connected()
	const want = `asked for input before it goes on: "Which region?", with the fields zone (optional), region, count. Nobody can be asked here`
	for tool, args := range map[string]string{
		"x":    `{}`,
		"asks": `{"request":{"method":"elicitation/create","params":{"message":"Which region?","requestedSchema":` + form + `}}}`,
	} {
		if res := r.call(tool, args); !res.IsError || !strings.Contains(text(res), want) {
			t.Errorf("%s: got %+v", tool, res)
		}
	}
	if log := text(r.call("log", "")); !strings.Contains(log, `"action":"decline"`) {
		t.Errorf("on the wire: %s", log)
	}
}

// A person's values are checked before they are sent, and an error of whoever
// asks is none of the server's business.
func TestElicitFailures(t *testing.T) {
	everyway(t, func(t *testing.T, server func(string) config.Server) {
		for name, tt := range map[string]struct {
			person *respondent
			says   string
		}{
			"wrong":   {accepting("region", "mars", "count", "3"), "must be one of the choices"},
			"missing": {accepting("region", "eu"), `the field "count" is required`},
			"nobody":  {&respondent{err: errors.New("the terminal is gone")}, "the terminal is gone"},
		} {
			r := startWith(t, settings(server("ask")), mcp.Options{Respondent: tt.person}).connected()
			res := r.call("ask", `{"message":"?","schema":`+form+`}`)
			if !res.IsError || !strings.Contains(text(res), tt.says) {
				t.Errorf("%s: got %+v", name, res)
			}
		}
	})
}

// A page is shown, and only a person says that it was visited.
func TestElicitURL(t *testing.T) {
	everyway(t, func(t *testing.T, server func(string) config.Server) {
		person := accepting()
		s := server("ask")
		s.Answers = []config.Variable{{Name: "x", Value: secret.Literal("y")}}
		r := startWith(t, settings(s), mcp.Options{Respondent: person}).connected()
		if res := r.call("ask", `{"message":"Pay.","url":"https://pay.example.com/a?b=c"}`); text(res) != `{"q":{"action":"accept"}}` {
			t.Errorf("got %+v", res)
		}
		if q := person.questions(); len(q) != 1 || q[0].URL != "https://pay.example.com/a?b=c" || q[0].Fields != nil {
			t.Errorf("asked %+v", q)
		}
		for _, url := range []string{"javascript:alert(1)", "file:///etc/passwd", "https://a:b@example.com/", "https://exämple.com/", "https://", "x"} {
			res := r.call("ask", `{"message":"Pay.","url":"`+url+`"}`)
			if !res.IsError || !strings.Contains(text(res), "the page that it asks to visit") {
				t.Errorf("%s: got %+v", url, res)
			}
		}
		if n := len(person.questions()); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}

// The refusal -32042 asks for visits; after them the call is made again.
func TestVisits(t *testing.T) {
	const refusal = `{"code":-32042,"message":"log in first","data":{"elicitations":[{"mode":"url","elicitationId":"1","url":"https://example.com/login","message":"Log in."}]}}`
	person := accepting()
	cfg := settings(stdio("a", mcptest.Scripted, "-list", `[{"name":"x"},{"name":"log"}]`, "-failure", refusal))
	r := startWith(t, cfg, mcp.Options{Respondent: person}).connected()
	if res := r.call("x", ""); !res.IsError || !strings.Contains(text(res), "came to no end") {
		t.Errorf("got %+v", res)
	}
	if n := len(person.questions()); n != 10 {
		t.Errorf("asked %d times", n)
	}
	r = startWith(t, cfg, mcp.Options{Respondent: &respondent{}}).connected()
	if res := r.call("x", ""); !res.IsError || !strings.Contains(text(res), "declined") {
		t.Errorf("got %+v", res)
	}
}

// Rounds are bounded, whoever counts.
func TestRounds(t *testing.T) {
	person := accepting()
	r := startWith(t, settings(stdio("a", mcptest.Standard, "-tools", "ask,busy")), mcp.Options{Respondent: person}).connected()
	if res := r.call("ask", `{"message":"?","again":3}`); res.IsError || len(person.questions()) != 4 {
		t.Errorf("got %+v after %d questions", res, len(person.questions()))
	}
	if res := r.call("ask", `{"message":"?","again":100}`); !res.IsError || !strings.Contains(text(res), "came to no end") {
		t.Errorf("got %+v", res)
	}
	if n := len(person.questions()); n > 20 {
		t.Errorf("%d questions", n)
	}
	if res := r.call("busy", ""); text(res) != "not busy any more" {
		t.Errorf("got %+v", res)
	}
}

// How long a person takes does not count against the call; the end of the call
// takes the question back.
func TestThinkingIsFree(t *testing.T) {
	everyway(t, func(t *testing.T, server func(string) config.Server) {
		person := accepting()
		person.wait = make(chan struct{})
		cfg := settings(server("ask"))
		cfg.ToolTimeout = 500 * time.Millisecond
		r := startWith(t, cfg, mcp.Options{Respondent: person}).connected()
		timer := time.AfterFunc(1200*time.Millisecond, func() { close(person.wait) })
		defer timer.Stop()
		if res := r.call("ask", `{"message":"?"}`); res.IsError {
			t.Errorf("got %+v", res)
		}

		person.wait = make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stop := time.AfterFunc(200*time.Millisecond, cancel)
		defer stop.Stop()
		if _, err := r.try(ctx, "ask", `{"message":"?"}`); tools.CodeOf(err) != tools.CodeCancelled {
			t.Errorf("got %v", err)
		}
	})
}

// A question that stands outside of any call is put to nobody.
func TestQuestionOutsideOfCall(t *testing.T) {
	person := accepting()
	r := startWith(t, settings(stdio("a", mcptest.Scripted, "-list", `[{"name":"asks"},{"name":"log"}]`)), mcp.Options{Respondent: person}).connected()
	for _, method := range []string{"elicitation/create", "sampling/createMessage"} {
		r.call("asks", `{"late":true,"request":{"method":"`+method+`","params":{"message":"?"}}}`)
		if _, err := r.Ping(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		if log := text(r.call("log", "")); !strings.Contains(log, `"error":{"code":-32600,"message":"there is no call that this could be for"}`) {
			t.Errorf("%s, on the wire: %s", method, log)
		}
	}
	if n := len(person.questions()); n != 0 {
		t.Errorf("asked %d times", n)
	}
}

// sampler is a model of one answer.
type sampler struct {
	mu    sync.Mutex
	asked []mcp.SampleRequest
}

func (s *sampler) Sample(_ context.Context, r mcp.SampleRequest) (mcp.Sample, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r)
	return mcp.Sample{Model: "m-1", Text: "one. two."}, nil
}

// Sampling is served within the bounds of the settings, and without them not.
func TestSampling(t *testing.T) {
	everyway(t, func(t *testing.T, server func(string) config.Server) {
		s := server("ask_model,capabilities")
		s.Sampling = &config.Sampling{MaxTokens: 50, MaxCalls: 2}
		model := new(sampler)
		r := startWith(t, settings(s), mcp.Options{Sampler: model}).connected()
		if got := text(r.call("capabilities", "")); !strings.Contains(got, `"sampling":{}`) || strings.Contains(got, "elicitation") {
			t.Errorf("announced %s", got)
		}
		res := r.call("ask_model", `{"prompt":"Count.","max_tokens":1000000,"stop":[" two"]}`)
		const want = `{"m":{"content":{"type":"text","text":"one."},"model":"m-1","role":"assistant","stopReason":"stopSequence"}}`
		if res.IsError || text(res) != want {
			t.Errorf("got %+v", res)
		}
		wanted := mcp.SampleRequest{Server: "a", System: "Be brief.", MaxTokens: 50, Messages: []mcp.SampleMessage{
			{Role: "user", Content: []tools.Content{{Kind: tools.KindText, Text: "Count."}}},
		}}
		if diff := cmp.Diff([]mcp.SampleRequest{wanted}, model.asked); diff != "" {
			t.Error(diff)
		}
		r.call("ask_model", `{"prompt":"Count.","max_tokens":7}`)
		res = r.call("ask_model", `{"prompt":"Count.","max_tokens":7}`)
		if said := text(res) + strings.Join(r.only().Warnings, "\n"); !res.IsError || !strings.Contains(said, "has had the 2 that the settings allow") {
			t.Errorf("got %+v", res)
		}
		if len(model.asked) != 2 || model.asked[1].MaxTokens != 7 {
			t.Errorf("asked %+v", model.asked)
		}
		if w := r.only().Warnings; len(w) == 0 || !strings.Contains(w[0], "as its settings allow") {
			t.Errorf("warnings %q", w)
		}
	})
}

// What no model is given is refused, and the server is told no more than that.
func TestSamplingRefused(t *testing.T) {
	s := stdio("a", mcptest.Scripted, "-list", `[{"name":"asks"}]`)
	s.Sampling = &config.Sampling{MaxTokens: 50, MaxCalls: 20}
	model := new(sampler)
	r := startWith(t, settings(s), mcp.Options{Sampler: model}).connected()
	for params, says := range map[string]string{
		`{"messages":[]}`: "has no messages",
		`{"messages":[{"role":"user","content":{"type":"text","text":"x"}}],"tools":[{"name":"t"}]}`: "brings tools",
		`{"messages":[{"role":"system","content":{"type":"text","text":"x"}}]}`:                      `the role "system"`,
		`{"messages":[{"role":"user","content":{"type":"tool_use"}}]}`:                               "what no model is given",
		`{"messages":[{"role":"user","content":[]}]}`:                                                "is empty",
		`{"messages":5}`: "can't be read",
		`[]`:             "can't be read",
	} {
		res := r.call("asks", `{"request":{"method":"sampling/createMessage","params":`+params+`}}`)
		if res.IsError || !strings.Contains(text(res), `"message":"declined"`) {
			t.Errorf("%s: got %+v", params, res)
		}
		if warned := strings.Join(r.only().Warnings, "\n"); !strings.Contains(warned, says) {
			t.Errorf("%s: warned %s", params, warned)
		}
	}
	if len(model.asked) != 0 {
		t.Errorf("asked %+v", model.asked)
	}
}

// Folders are told to whom the settings let know them.
func TestRoots(t *testing.T) {
	everyway(t, func(t *testing.T, server func(string) config.Server) {
		s := server("ask_roots,capabilities")
		s.Roots = true
		r := startWith(t, settings(s), mcp.Options{Roots: []mcp.Root{{Name: "/data", Path: "/srv/a b"}}}).connected()
		if got := text(r.call("capabilities", "")); !strings.Contains(got, `"roots":{}`) {
			t.Errorf("announced %s", got)
		}
		if res := r.call("ask_roots", ""); text(res) != `{"r":{"roots":[{"name":"/data","uri":"file:///srv/a%20b"}]}}` {
			t.Errorf("got %+v", res)
		}
	})
}

// What a server asks in a form that nobody could show fails one call.
func TestStrangeQuestions(t *testing.T) {
	person := accepting()
	for request, says := range map[string]string{
		`{"method":"elicitation/create","params":{"message":5}}`:                                                        "can't be read",
		`{"method":"elicitation/create","params":{"message":"?","mode":"voice"}}`:                                       `"voice"`,
		`{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"array"}}}`:                   "not that of an object",
		`{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"properties":{"a":{}}}}}`:            "no plain value",
		`{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"required":["a"],"properties":{}}}}`: "does not describe",
		`{"method":"tools/list","params":{}}`:                                                                           "not known here",
		`5`:                                                                                                             "can't be read",
	} {
		r := startWith(t, settings(stdio("a", mcptest.Scripted, "-list", `[{"name":"x"},{"name":"log"}]`, "-reply",
			`{"resultType":"input_required","inputRequests":{"q":`+request+`}}`)), mcp.Options{Respondent: person}).connected()
		if res := r.call("x", ""); !res.IsError || !strings.Contains(text(res), says) {
			t.Errorf("%s: got %s", request, text(res))
		}
		r.call("log", "")
	}
	if n := len(person.questions()); n != 0 {
		t.Errorf("asked %d times", n)
	}
}
