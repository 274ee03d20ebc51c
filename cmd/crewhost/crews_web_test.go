package main

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// officeAddress is where the files of a crew have what it asks over HTTP. A test that
// runs it serves the crew's folder web at a port of its own.
const officeAddress = "127.0.0.1:8937"

// office is what a crew asks over HTTP.
type office struct {
	mu    sync.Mutex
	asked []string
}

// serveWeb serves the folder web of a crew's copy, if it has one, and has the other files
// of the copy name the server.
func serveWeb(t *testing.T, dir string) *office {
	t.Helper()
	o := &office{}
	web := filepath.Join(dir, "web")
	if _, err := os.Stat(web); err != nil {
		return o
	}
	files := http.FileServer(http.Dir(web))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		o.asked = append(o.asked, r.Method+" "+r.URL.RequestURI())
		o.mu.Unlock()
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(data, []byte(officeAddress)) {
			return err
		}
		return os.WriteFile(path, bytes.ReplaceAll(data, []byte(officeAddress), []byte(server.Listener.Addr().String())), 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// requests are those that were made, sorted.
func (o *office) requests() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(slices.Values(o.asked))
}

// The tools that crews use most work together, really: each is called once and succeeds,
// what they say is in the report, and on the run's own tape all of it comes again with
// nobody asked.
func TestQuarterlyReport(t *testing.T) {
	s := readSample(t, "quarterly-report")
	file := filepath.Join(t.TempDir(), "tape")
	first := s.start(t, s.exit, strings.NewReader(""), io.Discard, append(slices.Clone(s.flags), "--events", "jsonl", "--record", file)...)
	called := map[string]int{}
	for line := range strings.Lines(first.stdout) {
		var h happening
		if err := json.Unmarshal([]byte(line), &h); err != nil {
			t.Fatal(err)
		}
		if h.Kind == "tool.returned" {
			if !h.Success {
				t.Errorf("%s failed: %s", h.ToolName, h.Error)
			}
			called[h.ToolName]++
		}
	}
	want := map[string]int{
		"json_tool": 1, "file_write": 1, "http_api": 1, "csv_reader": 1, "file_read": 1, "web_scrape": 1, "pdf_reader": 1, "relational_database_query": 1,
		"directory_read": 1, "semantic_search": 1, "xml_parser": 1, "github": 1, "shell_command": 1, "email_parser": 1, "web_search": 1, "human_input": 1,
	}
	if diff := cmp.Diff(want, called); diff != "" {
		t.Errorf("the tools that were called (-want +got):\n%s", diff)
	}

	asked := []string{
		"GET /notice.html", "GET /rates.json", "GET /repos/harbour-office/tide-gauge/issues?page=1&per_page=30&state=open",
		"GET /res/v1/web/search?count=2&q=shore+power+passenger+ships+ports+obligation&text_decorations=false",
	}
	if diff := cmp.Diff(asked, first.office.requests()); diff != "" {
		t.Errorf("what was asked over HTTP (-want +got):\n%s", diff)
	}
	again := s.start(t, s.exit, strings.NewReader(""), io.Discard, "--replay", file, "--replay-files")
	for _, part := range []string{"**92,215.78 euros**", "7.4 m", "6.14 m", "0.46 euros"} {
		if !strings.Contains(again.stdout, part) {
			t.Errorf("the report of a replay has no %s:\n%s", part, again.stdout)
		}
	}
	if got := again.office.requests(); len(got) > 0 {
		t.Errorf("a replay has asked %q", got)
	}
	for _, name := range []string{"report.md", "figures.json"} {
		one, err := os.ReadFile(filepath.Join(first.dir, "out", name))
		if err != nil {
			t.Fatal(err)
		}
		other, err := os.ReadFile(filepath.Join(again.dir, "out", name))
		if err != nil || !bytes.Equal(one, other) {
			t.Errorf("out/%s on a replay: %v\n%s", name, err, other)
		}
	}
}
