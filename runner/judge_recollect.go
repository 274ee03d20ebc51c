package runner

import (
	"fmt"
	"slices"
	"strings"

	"crewhost/config/strict"
	"crewhost/crew"
	"crewhost/runner/knowledge"
)

// The codes of what the host finds about a crew's memory and documents.
const (
	CodeMemory    = "memory"
	CodeKnowledge = "knowledge" // a source that names no document, a collection that is not there
)

// The tools by which agents use a crew's memory and documents.
const (
	toolRemember = "memory_store"
	toolRecall   = "semantic_search"
	toolConsult  = "rag_search"
)

// ofARun reports whether a tool works on what a crew has while it runs.
func ofARun(tool string) bool {
	return tool == toolRemember || tool == toolRecall || tool == toolConsult
}

// judgeMemory finds what of a crew's memory this host does not have.
func (h *Host) judgeMemory(c *crew.Crew) (issues, warnings crew.Issues) {
	uses := slices.ContainsFunc(c.ToolNames(), func(name string) bool { return name == toolRemember || name == toolRecall })
	pos := c.MemoryProvider.Pos
	if pos.File == "" {
		pos.File = c.Path
	}
	warn := func(message, hint string) {
		warnings = append(warnings, crew.Issue{Pos: pos, Code: CodeMemory, Message: message, Hint: hint})
	}
	switch provider := c.MemoryProvider.V; {
	case !c.Memory:
		if uses {
			warn(fmt.Sprintf("the crew has no memory: %s and %s find and keep nothing", toolRecall, toolRemember), "memory: true")
		}
	case provider != "" && provider != memorySQLite && provider != memoryInMemory:
		issues = append(issues, crew.Issue{
			Pos: pos, Code: CodeUnsupported, Message: fmt.Sprintf("memoryProvider: this host keeps no memories in %s", provider),
			Hint: memorySQLite + ", which is used where none is named, keeps them in a file and needs no server; " + memoryInMemory + " forgets them with the run",
		})
	case h.cfg.Settings.Memory.Dir == "" && provider != memoryInMemory:
		warn("nothing is remembered after the run: no folder for it is known", "memory: {dir: FOLDER} in the settings")
	case provider == memoryInMemory && !uses:
		warn(fmt.Sprintf("memoryProvider in-memory forgets with the run, and no agent has %s to use it before", toolRecall),
			"leave memoryProvider out, to remember from run to run")
	}
	return issues, warnings
}

// judgeKnowledge finds what is wrong with a crew's documents, without reading more
// than the beginning of any.
func (h *Host) judgeKnowledge(c *crew.Crew) (issues, warnings crew.Issues) {
	fail := func(pos crew.Pos, message, hint string) {
		issues = append(issues, crew.Issue{Pos: pos, Code: CodeKnowledge, Message: message, Hint: hint})
	}
	warn := func(pos crew.Pos, message, hint string) {
		warnings = append(warnings, crew.Issue{Pos: pos, Code: CodeKnowledge, Message: message, Hint: hint})
	}
	var names []string
	if c.RAG != nil {
		for _, collection := range c.RAG.Collections {
			names = append(names, collection.Name)
		}
	}
	for _, a := range c.Agents {
		for i, k := range a.Knowledge {
			at := fmt.Sprintf("agents.%s.knowledge.%d", a.Key, i)
			if !slices.Contains(names, k.Collection.V) {
				hint := strict.DidYouMean(k.Collection.V, names)
				if len(names) == 0 {
					hint = "declare it: rag: {collections: {" + k.Collection.V + ": {sources: [docs]}}}"
				}
				fail(k.Collection.Pos, fmt.Sprintf("%s: there is no collection %s", at, strict.Quote(k.Collection.V)), hint)
			}
			if k.Profile != "" && h.cfg.Settings.LLM.Embeddings == nil {
				warn(k.Collection.Pos, at+".profile: "+byWordsAlone, embeddingsHint)
			}
		}
	}
	if c.RAG == nil {
		if slices.Contains(c.ToolNames(), toolConsult) {
			warn(crew.Pos{File: c.Path}, "the crew has no documents: "+toolConsult+" finds nothing", "rag: {collections: {guides: {sources: [docs]}}}")
		}
		return issues, warnings
	}
	if c.RAG.Profile != "" && h.cfg.Settings.LLM.Embeddings == nil {
		warn(c.RAG.Pos, "rag.defaults.profile: "+byWordsAlone, embeddingsHint)
	}
	files, err := newSources(c.Path, h.fs)
	if err != nil {
		fail(c.RAG.Pos, "rag: "+err.Error(), "")
		return issues, warnings
	}
	defer func() { _ = files.Close() }()
	for _, collection := range c.RAG.Collections {
		at := "rag.collections." + collection.Name
		if !slices.Contains(knowledge.Strategies(), strings.ToLower(collection.Strategy)) {
			fail(c.RAG.Pos, fmt.Sprintf("%s.chunking.strategy: %s is not known", at, strict.Quote(collection.Strategy)), join(knowledge.Strategies()))
		}
		for _, pattern := range collection.Sources {
			_, skipped, err := files.matches(pattern.V, h.cfg.Settings.Knowledge.Files)
			if err != nil {
				fail(pattern.Pos, fmt.Sprintf("%s: the source %s: %v", at, strict.Quote(pattern.V), err), "")
			} else if len(skipped) > 0 {
				warn(pattern.Pos, fmt.Sprintf("%s: the source %s: left out, since they can't be read as text: %s", at, strict.Quote(pattern.V), several(skipped)), "")
			}
		}
	}
	return issues, warnings
}

const (
	byWordsAlone   = "the settings have no embeddings, so documents are found by their words alone"
	embeddingsHint = "llm: {embeddings: {model: …}}"
)
