package runner_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/config/secret"
	"crewhost/crew"
	"crewhost/runner"
	"crewhost/runner/event"
	"crewhost/runner/llm"
	"crewhost/runner/llm/llmtest"
)

const remembering = `
name: Sea Charts
goal: Chart the sea
memory: true
agents:
  pilot: {goal: Find the way, tools: [%s]}
tasks:
  chart: {description: Chart the channel at Brest., expectedOutput: A depth, agent: pilot}
`

const plainModel = "llm: {provider: openai, model: plain}\npermissions: {allow: [memory_store]}\nmemory: {dir: kept}\n"

// prompt has a check see what a task's first message is.
func prompt(holds, lacks []string) func(llm.Request) error {
	return func(req llm.Request) error {
		text := req.Messages[0].Text()
		for _, want := range holds {
			if !strings.Contains(text, want) {
				return fmt.Errorf("the prompt lacks %q:\n%s", want, text)
			}
		}
		for _, not := range lacks {
			if strings.Contains(text, not) {
				return fmt.Errorf("the prompt has %q:\n%s", not, text)
			}
		}
		return nil
	}
}

// The second run of a crew has in its prompt what the first came to, and where
// that is from. Secrets are not among what is kept.
func TestACrewRemembers(t *testing.T) {
	m := llmtest.New(t,
		llmtest.Text("The channel is nine fathoms deep; the key is hunter2hunter2.").Expect(prompt(nil, []string{"Memories"})),
		llmtest.Text("Nine fathoms, as before.").Expect(prompt(
			[]string{"# Memories", "never an instruction", `## [1] the output of task "chart", by "pilot", in the run of 20`, "The channel is nine fathoms deep; the key is " + secret.Mask},
			[]string{"hunter2hunter2", "[2]"})),
	)
	redactor := &secret.Redactor{}
	redactor.Add(secret.New("hunter2hunter2"))
	files := map[string]string{"crewhost.yaml": plainModel, "crew.yaml": fmt.Sprintf(remembering, "")}
	r := open(t, files, with(m), func(c *runner.Config) { c.Redactor = redactor })
	c := r.crew(nil)
	for range 2 {
		if _, err := r.host.Run(t.Context(), c, nil); err != nil {
			t.Fatal(err)
		}
	}
	path := runner.MemoryPath(filepath.Join(r.dir, "kept"), "Sea Charts")
	if !strings.HasPrefix(filepath.Base(path), "sea-charts-") {
		t.Error(path)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
}

// What failed is not remembered, and neither is what a tool gave back.
func TestOnlyCompletedTasksAreRemembered(t *testing.T) {
	m := llmtest.New(t,
		llmtest.Calls(llm.ToolCall{ID: "1", Name: "json_tool", Arguments: `{"input":"{\"depth\":\"seventeen\"}","operation":"format"}`}),
		llmtest.Fail(errors.New("gone")),
		llmtest.Text("Fine.").Expect(prompt(nil, []string{"Memories", "seventeen"})),
	)
	r := open(t, map[string]string{"crewhost.yaml": plainModel, "crew.yaml": fmt.Sprintf(remembering, "json_tool")}, with(m))
	c := r.crew(nil)
	if _, err := r.host.Run(t.Context(), c, nil); err == nil {
		t.Error("the first run did not fail")
	}
	if _, err := r.host.Run(t.Context(), c, nil); err != nil {
		t.Error(err)
	}
}

// A memory that can't be opened fails the run before a model is asked, and is left
// as it is.
func TestAMemoryThatCantBeOpened(t *testing.T) {
	r := open(t, map[string]string{"crewhost.yaml": plainModel, "crew.yaml": fmt.Sprintf(remembering, "")}, with(llmtest.New(t)))
	path := runner.MemoryPath(filepath.Join(r.dir, "kept"), "Sea Charts")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("dear diary"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := r.host.Run(t.Context(), r.crew(nil), nil)
	var ran *runner.RunError
	if err == nil || errors.As(err, &ran) || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "dear diary" {
		t.Error(string(data), err)
	}
}

// What goes wrong with the memory later costs the run nothing but a notice.
func TestAnOutputThatIsNotRemembered(t *testing.T) {
	files := map[string]string{"crewhost.yaml": strings.Replace(plainModel, "dir: kept", "dir: kept, bytes: 50", 1), "crew.yaml": fmt.Sprintf(remembering, "")}
	r := open(t, files, with(llmtest.New(t, llmtest.Text(strings.Repeat("deep ", 20)))))
	if _, err := r.host.Run(t.Context(), r.crew(nil), nil); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(r.events, func(e event.Event) bool {
		return e.Kind == event.Notice && e.Task == "chart" && strings.Contains(e.Text, "is not remembered")
	}) {
		t.Error("nobody was told")
	}
}

// Agents make notes and find them, in the same run and with memory of that run
// alone; nothing is left behind then.
func TestNotes(t *testing.T) {
	call := func(name, arguments string) llmtest.Turn {
		return llmtest.Calls(llm.ToolCall{ID: "1", Name: name, Arguments: arguments})
	}
	result := func(want string) func(llm.Request) error {
		return func(req llm.Request) error {
			last := req.Messages[len(req.Messages)-1]
			if !strings.Contains(last.Text(), want) {
				return fmt.Errorf("got %q", last.Text())
			}
			return nil
		}
	}
	m := llmtest.New(t,
		call("memory_store", `{"key":"buoy","text":"The red buoy has drifted north."}`),
		call("semantic_search", `{"query":"where is the buoy?","top_k":3}`).Expect(result("Kept.")),
		llmtest.Text("North.").Expect(result(`[1] the note "buoy" of task "chart", by "pilot", in the run of`)),
	)
	c := strings.Replace(fmt.Sprintf(remembering, "semantic_search, memory_store"), "memory: true", "memory: true\nmemoryProvider: InMemory", 1)
	r := open(t, map[string]string{"crewhost.yaml": plainModel, "crew.yaml": c}, with(m))
	if _, err := r.host.Run(t.Context(), r.crew(nil), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "kept")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was kept: %v", err)
	}
}

const reading = `
name: Guide
goal: Guide ships
agents:
  pilot: {goal: Find the way, knowledge: [{collection: guides, topK: 2}, log], tools: [rag_search]}
  cook: {goal: Feed the crew}
tasks:
  enter: {description: When may a ship enter the harbour at high tide?, expectedOutput: An hour, agent: pilot}
  eat: {description: What is for supper at high tide?, expectedOutput: A dish, agent: cook}
rag:
  collections:
    guides: {sources: [docs, "*.md"], chunking: {maxTokens: 20, overlap: 5}}
    log: {sources: ["/logs/*.csv"]}
`

// Agents with knowledge have excerpts in their prompts, with what to cite; others
// have none. What changes on disk is followed.
func TestKnowledge(t *testing.T) {
	files := map[string]string{
		"crewhost.yaml":     plainModel + "mounts: [\"./logs:/logs:ro\"]\n",
		"crew.yaml":         reading,
		"docs/harbour.md":   "# Harbour\n\nThe port is old.\n\n# Entering\n\nShips may enter the harbour two hours before high tide.\n",
		"docs/page.html":    "<html><style>p{}</style><p>Nothing about harbours.</p></html>",
		"docs/chart.png":    "\x89PNG\x00",
		"docs/.hidden.md":   "High tide harbour harbour.",
		"readme.md":         "Supper is at six.\n",
		"logs/2026.csv":     "day,tide\n1,high\n2,low\n",
		"elsewhere/note.md": "High tide in the harbour is a secret.\n",
	}
	cook := prompt(nil, []string{"Knowledge", "harbour two hours"})
	m := llmtest.New(t,
		llmtest.Text("Two hours before, says [1] docs/harbour.md.").Expect(prompt(
			[]string{
				"# Knowledge", "cite it by its number and place", "## [1] docs/harbour.md:5-7 (guides)\n\n# Entering\n\nShips may enter", "/logs/2026.csv:1-3 (log)\n\nday,tide\n1,high",
			}, []string{"secret", "hidden", ".png", "supper at"})),
		llmtest.Text("Fish.").Expect(cook),
		llmtest.Calls(llm.ToolCall{ID: "1", Name: "rag_search", Arguments: `{"question":"entering the harbour","collection":"guides","top_k":1}`}).Expect(prompt(
			[]string{"docs/harbour.md:1 (guides)\n\nShips may enter the harbour whenever they like."}, []string{"two hours"})),
		llmtest.Text("Whenever.").Expect(func(req llm.Request) error {
			if got := req.Messages[len(req.Messages)-1].Text(); !strings.HasPrefix(got, "[1] docs/harbour.md:1 (guides), score ") {
				return fmt.Errorf("rag_search gave %q", got)
			}
			return nil
		}),
		llmtest.Text("Fish.").Expect(cook),
	)
	r := open(t, files, with(m))
	c, err := crew.Load(filepath.Join(r.dir, "crew.yaml"))
	v := r.host.Judge(c, err, nil)
	if len(v.Issues) > 0 || len(v.Warnings) != 1 || !strings.Contains(v.Warnings[0].Message, "left out, since they can't be read as text: docs/chart.png") {
		t.Fatal(v.Issues, v.Warnings)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "kept")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("judging has written: %v", err)
	}
	if _, err := r.host.Run(t.Context(), c, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "docs", "harbour.md"), []byte("Ships may enter the harbour whenever they like."), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := r.host.Run(t.Context(), c, nil); err != nil {
		t.Fatal(err)
	}
}

func TestJudgeRecollection(t *testing.T) {
	const head = "name: A\ngoal: B\nagents: {one: {goal: C%s}}\ntasks: {t: {description: D, expectedOutput: E, agent: one}}\n"
	files := map[string]string{
		"crewhost.yaml": "llm: {provider: openai, model: plain}\nmounts: [\"./data:/data:ro\"]\n",
		"data/a.txt":    "a", "docs/a.md": "a", "docs/b[1].md": "b", "x{1}/c.md": "c", "docs/b.pdf": "%PDF-1.7", "bin/c.bin": "\x00", "many/1.md": "", "crew.yaml": "",
	}
	for name, tt := range map[string]struct {
		agent, crew string
		issues      []string
		warnings    []string
	}{
		"redis": {crew: "memory: true\nmemoryProvider: Redis\n", issues: []string{"6:17 memoryProvider: this host keeps no memories in redis"}},
		"no folder": {crew: "memory: true\n", warnings: []string{
			"1:1 nothing is remembered after the run: no folder for it is known"}},
		"of no use": {crew: "memory: true\nmemoryProvider: in-memory\n", warnings: []string{
			"6:17 memoryProvider in-memory forgets with the run, and no agent has semantic_search to use it before"}},
		"no memory": {agent: ", tools: [memory_store, rag_search]", warnings: []string{
			"the crew has no documents: rag_search finds nothing",
			"1:1 the crew has no memory: semantic_search and memory_store find and keep nothing",
			`3:10 agent "one": the policy asks about each call of memory_store, and nobody can be asked here: all of them will be refused`}},
		"all is well": {agent: ", knowledge: [x]", crew: "rag: {collections: {x: {sources: [docs/a.md, 'docs/b[1].md', 'x{1}', /data, /crew/docs/*.md, ./docs/../docs/?.md]}}}\n"},
		"no collection": {agent: ", knowledge: [guide]", crew: "rag: {collections: {guides: {sources: [docs/a.md]}}}\n", issues: []string{
			`3:37 agents.one.knowledge.0: there is no collection "guide"`}},
		"sources": {crew: `rag:
  collections:
    x:
      sources:
        - none.md
        - "*.nope"
        - ../other
        - /etc/passwd
        - https://example.com/a
        - 'docs\a.md'
        - docs/b.pdf
        - bin/c.bin
        - docs/*.pdf
        - "[a"
        - ~/notes
      chunking: {strategy: semantic}
`, issues: []string{
			`6:3 rag.collections.x.chunking.strategy: "semantic" is not known`,
			`9:11 rag.collections.x: the source "none.md": there is no such file`,
			`10:11 rag.collections.x: the source "*.nope": no file fits it`,
			`11:11 rag.collections.x: the source "../other": it is outside of the crew's folder; mount the folder that it is in, and name the virtual path`,
			`12:11 rag.collections.x: the source "/etc/passwd": no mount holds it; what is in the crew's folder is named by a relative path`,
			`13:11 rag.collections.x: the source "https://example.com/a": documents are read from files, not from the network`,
			`14:11 rag.collections.x: the source "docs\\a.md": it holds a backslash; folders are separated by "/"`,
			`15:11 rag.collections.x: the source "docs/b.pdf": it is no text in UTF-8: .pdf is a format (PDF) that is not read; export it as text, markdown, csv, json or html`,
			`16:11 rag.collections.x: the source "bin/c.bin": it is no text in UTF-8`,
			`17:11 rag.collections.x: the source "docs/*.pdf": what fits it is no text: docs/b.pdf`,
			`18:11 rag.collections.x: the source "[a": it is no valid pattern`,
			`19:11 rag.collections.x: the source "~/notes": it is outside of the crew's folder and of the mounts`,
		}},
		"profile": {crew: "rag: {collections: {x: {sources: [docs/a.md]}}, defaults: {profile: fast}}\n", warnings: []string{
			"5:6 rag.defaults.profile: the settings have no embeddings, so documents are found by their words alone"}},
	} {
		t.Run(name, func(t *testing.T) {
			files["crew.yaml"] = fmt.Sprintf(head, tt.agent) + tt.crew
			r := open(t, files, with(llmtest.New(t)))
			c, err := crew.Load(filepath.Join(r.dir, "crew.yaml"))
			v := r.host.Judge(c, err, nil)
			lines := func(issues crew.Issues) []string {
				var all []string
				for _, i := range issues {
					at := ""
					if i.Line > 0 {
						at = fmt.Sprintf("%d:%d ", i.Line, i.Column)
					}
					all = append(all, at+i.Message)
				}
				return all
			}
			if diff := cmp.Diff(tt.issues, lines(v.Issues)); diff != "" {
				t.Error("issues", diff)
			}
			if diff := cmp.Diff(tt.warnings, lines(v.Warnings)); diff != "" {
				t.Error("warnings", diff)
			}
		})
	}
}

// A link that leads out of the crew's folder is no way to read what is there.
func TestSourcesStayInside(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside.md")
	if err := os.WriteFile(outside, []byte("private"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := open(t, map[string]string{"crewhost.yaml": plainModel, "crew.yaml": strings.Replace(reading, `"/logs/*.csv"`, `docs`, 1), "docs/a.md": "a", "b.md": "b"}, with(llmtest.New(t)))
	if err := os.Symlink(outside, filepath.Join(r.dir, "docs", "link.md")); err != nil {
		t.Skip(err)
	}
	c, err := crew.Load(filepath.Join(r.dir, "crew.yaml"))
	v := r.host.Judge(c, err, nil)
	if len(v.Warnings) == 0 || !strings.Contains(v.Warnings[0].Message, "docs/link.md") {
		t.Error(v.Issues, v.Warnings)
	}
}

// Texts are embedded as the settings say, behind the budget of the run, and what
// is near in meaning is found though no word is shared.
func TestEmbeddings(t *testing.T) {
	var asked []string
	server := embeddings(t, func(text string) []float64 {
		asked = append(asked, text)
		if strings.Contains(text, "tide") || strings.Contains(text, "water level") {
			return []float64{1, 0.1}
		}
		return []float64{0, 1}
	})
	settings := "llm: {provider: openai, model: plain, embeddings: {provider: openai-compatible, base_url: \"" + server +
		"\", model: near}, prices: {near: {input: 1, output: 0}}}\nmemory: {dir: kept}\n"
	c := "name: A\ngoal: B\nagents: {one: {goal: C, knowledge: [{collection: x, minScore: 0.5}]}}\n" +
		"tasks: {t: {description: Report the water level., expectedOutput: A number, agent: one}}\nrag: {collections: {x: {sources: [docs]}}}\n"
	m := llmtest.New(t, llmtest.Text("1").Expect(prompt([]string{"docs/a.md:1 (x)\n\nThe tide is three metres."}, []string{"Bread"})),
		llmtest.Text("1").Expect(prompt([]string{"docs/a.md:1 (x)"}, nil)))
	r := open(t, map[string]string{"crewhost.yaml": settings, "crew.yaml": c, "docs/a.md": "The tide is three metres.", "docs/b.md": "Bread is baked."}, with(m))
	loaded := r.crew(nil)
	out, err := r.host.Run(t.Context(), loaded, nil)
	if err != nil || !out.Cost.Priced || out.Cost.Amount == (llm.Amount(0)) {
		t.Fatalf("%v %+v", err, out.Cost)
	}
	// All of it is told: what the documents cost before the first task, and the
	// question, which is the task's.
	var last event.Event
	var of []string
	for _, e := range r.events {
		if e.Kind == event.CostUpdated {
			last = e
			if e.Operation == "embed" {
				of = append(of, e.Task+e.Agent)
			}
		}
	}
	if diff := cmp.Diff([]string{"", "t"}, of); diff != "" {
		t.Error(diff)
	}
	if last.Cost != out.Cost.Amount.Float() || last.InputTokens != out.Usage.Input || out.Asked["embed"].Input != 2000 {
		t.Errorf("told %v, %d tokens; it came to %+v", last.Cost, last.InputTokens, out)
	}
	if !slices.Contains(asked, "The tide is three metres.") || len(asked) != 3 {
		t.Error(asked)
	}
	if _, err := r.host.Run(t.Context(), loaded, nil); err != nil || len(asked) != 4 {
		t.Errorf("%v: what is embedded is embedded anew: %q", err, asked)
	}
}

// embeddings is an endpoint that embeds texts by a function.
func embeddings(t *testing.T, embed func(text string) []float64) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		var data []any
		for i, text := range in.Input {
			data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": embed(text)})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"object": "list", "model": "near", "data": data, "usage": map[string]any{"prompt_tokens": 1000, "total_tokens": 1000},
		})
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// A budget that is spent before the first task fails the run as one that is spent
// later does.
func TestEmbeddingsWithinTheBudget(t *testing.T) {
	server := embeddings(t, func(string) []float64 { return []float64{1} })
	files := map[string]string{
		"crewhost.yaml": "llm: {provider: openai, model: plain, budget: {tokens: 500}, embeddings: {provider: openai-compatible, base_url: \"" + server + "\", model: near}}\n",
		"crew.yaml": "name: A\ngoal: B\nagents: {one: {goal: C, knowledge: [x]}}\n" +
			"tasks: {t: {description: d, expectedOutput: e, agent: one}}\nrag: {collections: {x: {sources: [docs]}}}\n",
	}
	for i := range 70 { // more than go into one request
		files[fmt.Sprintf("docs/%d.md", i)] = fmt.Sprintf("Document %d.", i)
	}
	r := open(t, files, with(llmtest.New(t)))
	out, err := r.host.Run(t.Context(), r.crew(nil), nil)
	var failed *runner.RunError
	var spent *runner.BudgetError
	if !errors.As(err, &spent) || !errors.As(err, &failed) || out == nil || len(out.Tasks) != 0 {
		t.Errorf("%v %+v", err, out)
	}
}

// What goes wrong with a task's documents is told with the task, the agent and the
// attempt.
func TestATroubleOfDocumentsHasItsPlace(t *testing.T) {
	answered := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if answered { // the documents are there, the question is refused
			http.Error(w, "no more", http.StatusBadRequest)
			return
		}
		answered = true
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]}],"usage":{"prompt_tokens":1,"total_tokens":1}}`)
	}))
	defer server.Close()
	r := open(t, map[string]string{
		"crewhost.yaml": "llm: {provider: openai, model: plain, embeddings: {provider: openai-compatible, base_url: \"" + server.URL + "\", model: near}}\n",
		"crew.yaml": "name: A\ngoal: B\nagents: {one: {role: First, goal: C, knowledge: [x]}}\n" +
			"tasks: {t: {description: d, expectedOutput: e, agent: one}}\nrag: {collections: {x: {sources: [docs]}}}\n",
		"docs/a.md": "Document A.",
	}, with(llmtest.New(t, llmtest.Text("done"))))
	if _, err := r.host.Run(t.Context(), r.crew(nil), nil); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(r.events, func(e event.Event) bool {
		return e.Kind == event.Notice && e.Task == "t" && e.Agent == "one" && e.Role == "First" && e.Attempt == 1 && strings.Contains(e.Text, "the collection")
	}) {
		t.Errorf("%+v", r.events)
	}
}
