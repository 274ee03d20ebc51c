// Package strict decodes documents in YAML, JSON with comments, and TOML into
// Go structs without leniency: every unknown key, duplicate key, wrong type and
// bad value is reported, all at once, each with file, line and column and, for
// a key, the nearest known one.
//
// A parser turns a file into a tree of [Node], each of which knows its place;
// [Decode] fills a struct from a tree.
//
//	node, issues := strict.Parse("crew.yaml", data, strict.Limits{})
//	var doc struct {
//		Name strict.At[string] `key:"name,required"`
//	}
//	issues = append(issues, strict.Decode(node, &doc)...)
package strict

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Pos is a place in a file. Lines and columns count from 1; zero is unknown.
type Pos struct {
	File         string
	Line, Column int
}

// String returns file:line:column, as far as it is known.
func (p Pos) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	default:
		return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
	}
}

// Issue is one problem of a document.
type Issue struct {
	Pos
	// Code is a stable word, such as "unknown-key".
	Code string
	// Message says in one line what is wrong.
	Message string
	// Hint says what to write instead; it may be empty.
	Hint string
}

// Error returns the issue as a line: place, message, hint, code.
func (i Issue) Error() string {
	var b strings.Builder
	if place := i.String(); place != "" {
		b.WriteString(place + ": ")
	}
	b.WriteString(i.Message)
	if i.Hint != "" {
		b.WriteString(" (" + i.Hint + ")")
	}
	if i.Code != "" {
		b.WriteString(" [" + i.Code + "]")
	}
	return b.String()
}

// Issues are the problems of one or more documents.
type Issues []Issue

// Error joins the issues, a line each.
func (is Issues) Error() string {
	lines := make([]string, len(is))
	for n, i := range is {
		lines[n] = i.Error()
	}
	return strings.Join(lines, "\n")
}

// maxIssues is the number of problems after which no more are listed: nobody
// reads further, and a hostile file has as many as it likes.
const maxIssues = 500

func (is Issues) full() bool { return len(is) > maxIssues }

func (is Issues) add(i Issue) Issues {
	switch {
	case is.full():
		return is
	case len(is) == maxIssues:
		i = Issue{Pos: Pos{File: i.File}, Code: CodeTooLarge, Message: fmt.Sprintf("more than %d problems; the rest is not listed", maxIssues)}
	}
	return append(is, i)
}

// Quote returns a word of a document in quotes for a message, on one line, and
// cut where it is long.
func Quote(s string) string {
	const longest = 80
	if r := []rune(s[:min(len(s), 4*longest)]); len(r) > longest || len(s) > 4*longest {
		return strconv.Quote(string(r[:min(len(r), longest)]) + "…")
	}
	return strconv.Quote(s)
}

// Sort orders the issues by file, line, column, code and message.
func (is Issues) Sort() {
	slices.SortStableFunc(is, func(a, b Issue) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Code, b.Code),
			cmp.Compare(a.Message, b.Message),
		)
	})
}

// Err returns the issues as an error, or nil where there are none.
func (is Issues) Err() error {
	if len(is) == 0 {
		return nil
	}
	return is
}

// The codes of this package.
const (
	CodeSyntax       = "syntax"
	CodeTooLarge     = "too-large"
	CodeUnknownKey   = "unknown-key"
	CodeDuplicateKey = "duplicate-key"
	CodeWrongType    = "wrong-type"
	CodeMissing      = "missing"
	CodeBadValue     = "bad-value"
)
