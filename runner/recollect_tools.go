package runner

import (
	"context"
	"errors"
	"fmt"

	"crewhost/runner/knowledge"
	"crewhost/runner/memory"
	"crewhost/tools"
	"crewhost/tools/builtin/mind"
)

// recollectionKey is the key under which the context of a run holds its
// recollection: tools are registered for a host, and a memory is of a crew.
type recollectionKey struct{}

func (r *recollection) bind(ctx context.Context) context.Context {
	return context.WithValue(ctx, recollectionKey{}, r)
}

func recollectionOf(ctx context.Context) *recollection {
	r, _ := ctx.Value(recollectionKey{}).(*recollection)
	return r
}

// memoryOf and documentsOf are what the tools of the run of a context work with.
func memoryOf(ctx context.Context) mind.Memory {
	if r := recollectionOf(ctx); r != nil && r.memory != nil {
		return noted{r}
	}
	return nil
}

func documentsOf(ctx context.Context) mind.Documents {
	if r := recollectionOf(ctx); r != nil && r.library != nil {
		return shelf{r}
	}
	return nil
}

// errRecollection is all that a model learns of what went wrong: the rest names
// files of the host.
var errRecollection = errors.New("it can't be used at the moment")

// noted is the memory as agents use it.
type noted struct{ *recollection }

// Search implements [mind.Memory]. It finds also what this run has kept.
func (n noted) Search(ctx context.Context, query string, top int, least float64) ([]mind.Passage, error) {
	found, err := n.memory.Recall(ctx, memory.Question{Text: query, Top: top, MinScore: least})
	if err != nil {
		n.warn(ctx, "", "the crew's memory: %v", err)
		if len(found) == 0 {
			return nil, errRecollection
		}
	}
	var passages []mind.Passage
	for _, e := range found {
		passages = append(passages, mind.Passage{Place: provenance(e), Text: e.Text, Score: e.Score})
	}
	return passages, nil
}

// Store implements [mind.Memory].
func (n noted) Store(ctx context.Context, call tools.Call, key, text string) error {
	err := n.memory.Keep(ctx, memory.Entry{
		Run: n.run, RunAt: n.began, Task: call.Task, Agent: call.Agent, Key: n.redact(key), Text: n.redact(text),
	})
	if err != nil {
		n.warn(ctx, call.Task, "a note is not remembered: %v", err)
		return errRecollection
	}
	return nil
}

// shelf is the documents as agents use them.
type shelf struct{ *recollection }

// Collections implements [mind.Documents].
func (s shelf) Collections() []string {
	var names []string
	for _, c := range s.crew.RAG.Collections {
		names = append(names, c.Name)
	}
	return names
}

// Search implements [mind.Documents].
func (s shelf) Search(ctx context.Context, question, collection string, top int) ([]mind.Passage, error) {
	q := knowledge.Question{Text: question, Top: top}
	if collection != "" {
		q.Collections = []string{collection}
	}
	found, err := s.library.Find(ctx, q)
	if err != nil {
		s.warn(ctx, "", "the crew's documents: %v", err)
		if len(found) == 0 {
			return nil, errRecollection
		}
	}
	var passages []mind.Passage
	for _, e := range found {
		passages = append(passages, mind.Passage{Place: fmt.Sprintf("%s (%s)", e.Cite(), e.Collection), Text: s.redact(e.Text), Score: e.Score})
	}
	return passages, nil
}
