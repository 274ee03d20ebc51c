package documents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/itchyny/gojq"
)

// jqMeter is the context of a running query. gojq asks it before each step, which is
// where steps are counted and memory is looked at: a loop ends at the same step on every
// machine, and without anything that runs beside it.
type jqMeter struct {
	context.Context //nolint:containedctx // it is one
	cancel          context.CancelFunc
	why             error
	steps           int
	looked          time.Time
	sample          []metrics.Sample
	base            uint64
}

const (
	maxJQSteps  = 10_000_000
	maxJQMemory = 256 << 20
)

func newJQMeter(ctx context.Context) *jqMeter {
	m := &jqMeter{looked: time.Now(), sample: []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}}
	m.Context, m.cancel = context.WithCancel(ctx)
	m.base = m.memory()
	return m
}

func (m *jqMeter) memory() uint64 {
	metrics.Read(m.sample)
	return m.sample[0].Value.Uint64()
}

// Done implements [context.Context].
func (m *jqMeter) Done() <-chan struct{} {
	m.spend(1)
	if m.steps%4 != 0 {
		return m.Context.Done()
	}
	// What grows fast takes time to copy: a millisecond holds no more than some megabytes.
	if now := time.Now(); now.Sub(m.looked) > time.Millisecond {
		m.looked = now
		if used := m.memory(); used > m.base+maxJQMemory {
			m.stop(errors.New("takes too much memory; make it more specific"))
		}
	}
	return m.Context.Done()
}

func (m *jqMeter) spend(steps int) {
	if m.steps += steps; m.steps > maxJQSteps {
		m.stop(errors.New("takes too many steps; make it more specific, and see that it ends"))
	}
}

func (m *jqMeter) stop(why error) {
	if m.why == nil {
		m.why = why
	}
	m.cancel()
}

// Err implements [context.Context].
func (m *jqMeter) Err() error {
	err := m.Context.Err()
	if err != nil && m.why == nil {
		m.why = errors.New("takes too long; make it more specific")
	}
	return err
}

// jqChecks are functions that stand before steps that no context can stop. A value of jq
// can hold the same part many times: [.,.] thirty times over is a value of a billion
// parts, made in no time, and comparing it or turning it into text takes for ever.
type jqChecks struct{ meter *jqMeter }

func (c jqChecks) options() []gojq.CompilerOption {
	pair := func(check func(l, r any) error) func(any, []any) any {
		return func(_ any, args []any) any {
			if err := check(args[0], args[1]); err != nil {
				return err
			}
			return []any{args[0], args[1]}
		}
	}
	whole := func(v any, _ []any) any {
		if err := c.size(v); err != nil {
			return err
		}
		return v
	}
	return []gojq.CompilerOption{
		gojq.WithFunction("_checked", 0, 0, whole),
		gojq.WithFunction("_checked_number", 0, 0, func(v any, _ []any) any {
			if s, ok := v.(string); ok && len(s) > maxDigits {
				return errors.New("the number is too long")
			}
			return v
		}),
		gojq.WithFunction("_checked_index", 0, 0, func(v any, _ []any) any {
			if err := c.size(v); err != nil {
				return err
			}
			if tooFar(v) {
				return fmt.Errorf("an index of more than %d", maxJQIndex)
			}
			return v
		}),
		gojq.WithFunction("_checked_text", 0, 0, func(v any, _ []any) any {
			if s, ok := v.(string); ok && len(s) > maxMatched {
				return fmt.Errorf("the text has more than %d bytes, which is too long to search in", maxMatched)
			}
			return v
		}),
		gojq.WithFunction("_checked_same", 2, 2, pair(c.same)),
		gojq.WithFunction("_checked_each", 2, 2, pair(c.each)),
		gojq.WithFunction("_checked_product", 2, 2, pair(c.product)),
	}
}

// tooFar reports an index, or a path or an event of a stream with one, that would have a
// list made that long.
func tooFar(v any) bool {
	if path, ok := v.([]any); ok {
		if len(path) > 0 {
			if _, event := path[0].([]any); event {
				path = path[:1]
			}
		}
		return slices.ContainsFunc(path, tooFar)
	}
	n, ok := gojq.ToFloat64(v)
	return ok && n > maxJQIndex
}

// same is for what looks at each part of two values at most once.
func (c jqChecks) same(l, r any) error {
	if single(l) || single(r) {
		return nil
	}
	return errors.Join(c.size(l), c.size(r))
}

// each is for what compares each part of one value with each part of the other.
func (c jqChecks) each(l, r any) error {
	if single(l) && single(r) {
		return nil
	}
	left, lerr := c.count(l)
	right, rerr := c.count(r)
	if err := errors.Join(lerr, rerr); err != nil {
		return err
	}
	if left*right > maxJQProduct {
		return errors.New(jqNoMoreParts)
	}
	return nil
}

// product is for what multiplies.
func (c jqChecks) product(l, r any) error {
	for _, v := range []any{l, r} {
		if n, ok := v.(*big.Int); ok && n.BitLen() > 4*maxDigits {
			return errors.New("makes a number that is too long to work on")
		}
	}
	if s, ok := r.(string); ok {
		l, r = s, l
	}
	if s, ok := l.(string); ok {
		if n, ok := gojq.ToFloat64(r); ok && n*float64(len(s)) > maxJQString {
			return errors.New("makes a text that is too long to work on")
		}
	}
	return c.same(l, r)
}

// single reports that a value has no parts.
func single(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return false
	}
	return true
}

func (c jqChecks) size(v any) error {
	_, err := c.count(v)
	return err
}

// count is how many parts a value has, those counted again that it holds again.
func (c jqChecks) count(v any) (int, error) {
	n := counter{}
	ok := n.add(v, 0)
	c.meter.spend(n.parts)
	if !ok {
		return 0, errors.New(jqNoMoreParts)
	}
	return n.parts, nil
}

type counter struct{ parts, bytes int }

func (n *counter) add(v any, depth int) bool {
	n.parts++
	if n.parts > maxJQNodes || n.bytes > maxJQBytes || depth > maxJQNested {
		return false
	}
	switch v := v.(type) {
	case string:
		n.bytes += len(v)
	case json.Number:
		return len(v) <= maxDigits
	case []any:
		for _, item := range v {
			if !n.add(item, depth+1) {
				return false
			}
		}
	case map[string]any:
		for name, item := range v {
			n.bytes += len(name)
			if !n.add(item, depth+1) {
				return false
			}
		}
	}
	return true
}

// rewriting puts checks into a query.
type rewriting struct{ err error }

func (r *rewriting) refuse(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// walk goes through all parts of a query, the inner ones first: what it puts in is not
// looked at again.
func (r *rewriting) walk(part any) { r.value(reflect.ValueOf(part)) }

func (r *rewriting) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		r.value(v.Elem())
		switch part := v.Interface().(type) {
		case *gojq.Query:
			r.query(part)
		case *gojq.Term:
			r.term(part)
		case *gojq.Index:
			for _, at := range []*gojq.Query{part.Start, part.End} {
				if at != nil && at.Term != nil && at.Term.Type == gojq.TermTypeNumber && tooFar(json.Number(at.Term.Number)) {
					r.refuse("has an index of more than %d", maxJQIndex)
				}
			}
			part.Start, part.End = checkedBy("_checked_index", part.Start), checkedBy("_checked_index", part.End)
		case *gojq.String:
			for i, q := range part.Queries {
				if c := checked(q); c != q { // the parts of a text must be terms
					part.Queries[i] = &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeQuery, Query: c}}
				}
			}
		case *gojq.PatternObject:
			part.KeyQuery = checked(part.KeyQuery)
		}
	case reflect.Slice:
		for i := range v.Len() {
			r.value(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			r.value(v.Field(i))
		}
	}
}

func (r *rewriting) query(q *gojq.Query) {
	if len(q.Imports) > 0 || q.Meta != nil {
		r.refuse("names a module, and there are none here")
	}
	var form string
	switch q.Op {
	case gojq.OpEq, gojq.OpNe, gojq.OpLt, gojq.OpLe, gojq.OpGt, gojq.OpGe:
		form = "_checked_same(_left; _right) | .[0] %s .[1]"
	case gojq.OpSub:
		form = "_checked_each(_left; _right) | .[0] %s .[1]"
	case gojq.OpMul:
		form = "_checked_product(_left; _right) | .[0] %s .[1]"
	case gojq.OpUpdateSub:
		form, q.Op = "_right as $_by | _left |= (_checked_each(.; $_by) | .[0] %s .[1])", gojq.OpSub
	case gojq.OpUpdateMul:
		form, q.Op = "_right as $_by | _left |= (_checked_product(.; $_by) | .[0] %s .[1])", gojq.OpMul
	default:
		return
	}
	fill(q, fmt.Sprintf(form, q.Op), map[string]*gojq.Query{"_left": q.Left, "_right": q.Right})
}

// term puts checks before functions, and on what they are given.
func (r *rewriting) term(t *gojq.Term) {
	switch t.Type {
	case gojq.TermTypeFormat:
		inside(t, "_checked | _inner")
		return
	case gojq.TermTypeFunc:
	default:
		return
	}
	if outsideJQ(t.Func.Name) {
		r.refuse("uses %s, which is not available: a query sees the document alone", t.Func.Name)
	}
	switch t.Func.Name {
	case "sort", "unique", "min", "max", "tojson", "tostring", "format", "flatten", "add", "join", "transpose":
		inside(t, "_checked | _inner")
	case "test", "match", "capture", "scan", "split", "splits", "sub", "gsub":
		inside(t, "_checked_text | _inner")
	case "contains", "inside", "indices", "index", "rindex":
		if len(t.Func.Args) == 1 {
			arg := t.Func.Args[0]
			t.Func.Args[0] = mustParse("$_by")
			inner := *t
			inner.SuffixList = nil
			q := &gojq.Query{}
			fill(q, "_checked_each(.; _left) | .[1] as $_by | .[0] | _right", map[string]*gojq.Query{"_left": arg, "_right": {Term: &inner}})
			t.Type, t.Query, t.Func = gojq.TermTypeQuery, q, nil
		}
	case "tonumber":
		inside(t, "_checked_number | _inner")
	case "fromjson":
		inside(t, "_inner | _checked")
	case "nth", "setpath", "getpath", "fromstream":
		if len(t.Func.Args) > 0 {
			t.Func.Args[0] = checkedBy("_checked_index", t.Func.Args[0])
		}
	case "sort_by", "group_by", "unique_by", "min_by", "max_by", "INDEX", "IN", "bsearch", "delpaths":
		for i, arg := range t.Func.Args {
			t.Func.Args[i] = checked(arg)
		}
		if t.Func.Name == "IN" || t.Func.Name == "bsearch" {
			inside(t, "_checked | _inner")
		}
	}
}

// inside puts a term into a form, in the place of _inner.
func inside(t *gojq.Term, form string) {
	inner := *t
	inner.SuffixList = nil
	q := &gojq.Query{}
	fill(q, form, map[string]*gojq.Query{"_inner": {Term: &inner}})
	*t = gojq.Term{Type: gojq.TermTypeQuery, Query: q, SuffixList: t.SuffixList}
}

// checked is a query whose values are checked, or the query itself where it is a plain
// number or text.
func checked(q *gojq.Query) *gojq.Query { return checkedBy("_checked", q) }

func checkedBy(check string, q *gojq.Query) *gojq.Query {
	if q == nil || q.Term != nil && len(q.Term.SuffixList) == 0 &&
		(q.Term.Type == gojq.TermTypeNumber || q.Term.Type == gojq.TermTypeUnary || q.Term.Type == gojq.TermTypeString && len(q.Term.Str.Queries) == 0) {
		return q
	}
	out := &gojq.Query{}
	fill(out, "_inner | "+check, map[string]*gojq.Query{"_inner": q})
	return out
}

// fill makes q the form, with queries in the places of the names.
func fill(q *gojq.Query, form string, parts map[string]*gojq.Query) {
	for name, part := range parts {
		copied := *part // q may be what it stands in
		parts[name] = &copied
	}
	defs := q.FuncDefs
	*q = *mustParse(form)
	q.FuncDefs = defs
	place(reflect.ValueOf(q), parts)
}

func place(v reflect.Value, parts map[string]*gojq.Query) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		if t, ok := v.Interface().(*gojq.Term); ok && t.Type == gojq.TermTypeFunc && parts[t.Func.Name] != nil {
			*t = gojq.Term{Type: gojq.TermTypeQuery, Query: parts[t.Func.Name]}
			return
		}
		place(v.Elem(), parts)
	case reflect.Slice:
		for i := range v.Len() {
			place(v.Index(i), parts)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			place(v.Field(i), parts)
		}
	}
}

// mustParse reads a form of this file.
func mustParse(form string) *gojq.Query {
	q, err := gojq.Parse(form)
	if err != nil {
		panic("documents: " + form + ": " + err.Error())
	}
	return q
}
