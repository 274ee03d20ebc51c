package strict

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// At is a value that knows its place. Set is false where the document does not
// give the value, or gives nothing ("goal:"); Pos is then where it would be.
type At[T any] struct {
	Pos
	V   T
	Set bool
}

// Named is an entry of a map whose keys the document chooses.
type Named[T any] struct {
	Key    string
	KeyPos Pos
	V      T
}

// Unmarshaler is a type that decodes itself, such as one that is written as a
// word or as a mapping. It reports what is wrong to d and returns.
type Unmarshaler interface {
	UnmarshalNode(d *Decoder, n *Node)
}

// Decode fills the struct that into points to from a map, and returns every
// problem. A nil node is an empty map.
//
// Fields name their key in a tag, first the usual spelling, then others:
//
//	Output At[string] `key:"expectedOutput|output,required"`
//
// A camelCase key may also be written in snake_case. A field without a tag is
// not decoded, but the fields of an embedded struct are as if they stood here. The tag "@" marks a field of type [Pos] that takes the place of
// the map itself. Field types are string, bool, integers, float64,
// [time.Duration] ("30s"), [At], pointers (nil: not given), slices, []Named for
// maps with free keys, *[Node] for anything, structs, and [Unmarshaler].
func Decode(n *Node, into any) Issues {
	d := &Decoder{}
	d.Decode(n, into, "")
	return d.issues
}

// Decoder collects the problems of one decoding. Its methods are for an
// [Unmarshaler].
type Decoder struct {
	issues Issues
	path   []string
}

// Fail reports a problem at a place.
func (d *Decoder) Fail(pos Pos, code, message, hint string) {
	d.issues = d.issues.add(Issue{Pos: pos, Code: code, Message: message, Hint: hint})
}

// Issues returns the problems reported so far.
func (d *Decoder) Issues() Issues { return d.issues }

// Path names what is being decoded: "tasks.write.deliverable".
func (d *Decoder) Path() string { return strings.Join(d.path, ".") }

// step returns a part of a path as it is shown: on one line and not too long.
func step(name string) string {
	if quoted := Quote(name); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}

// Decode fills what into points to from n; name is added to the path.
func (d *Decoder) Decode(n *Node, into any, name string) {
	if name != "" {
		d.path = append(d.path, step(name))
		defer func() { d.path = d.path[:len(d.path)-1] }()
	}
	if n == nil {
		n = &Node{Kind: Map}
	}
	d.value(n, reflect.ValueOf(into).Elem())
}

func (d *Decoder) value(n *Node, v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[*Node]():
		v.Set(reflect.ValueOf(n))
		return
	case v.CanAddr() && v.Addr().Type().Implements(reflect.TypeFor[Unmarshaler]()):
		v.Addr().Interface().(Unmarshaler).UnmarshalNode(d, n)
		return
	case isAt(v.Type()):
		v.FieldByName("Pos").Set(reflect.ValueOf(n.Pos))
		if n.Kind != Null {
			v.FieldByName("Set").SetBool(true)
			d.value(n, v.FieldByName("V"))
		}
		return
	case n.Kind == Null: // a key with nothing after it is a key not given
		return
	case v.Type() == reflect.TypeFor[time.Duration]():
		d.duration(n, v)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		d.value(n, p.Elem())
		v.Set(p)
	case reflect.Struct:
		d.structure(n, v)
	case reflect.Slice:
		if isNamed(v.Type().Elem()) {
			d.named(n, v)
		} else {
			d.list(n, v)
		}
	case reflect.String:
		if d.scalar(n, "a string", String) {
			v.SetString(n.Text)
		}
	case reflect.Bool:
		d.boolean(n, v)
	case reflect.Int, reflect.Int64:
		d.integer(n, v)
	case reflect.Float64:
		d.number(n, v)
	default:
		panic("strict: no way to decode a " + v.Type().String()) // a fault of the struct, not of the document
	}
}

// scalar reports whether n is of one of the kinds, or untyped; if not, it says so.
func (d *Decoder) scalar(n *Node, want string, kinds ...Kind) bool {
	if n.Kind == Untyped {
		return true
	}
	for _, k := range kinds {
		if n.Kind == k {
			return true
		}
	}
	d.WrongType(n, want)
	return false
}

// WrongType reports that n is not what is wanted: "a list", "a string".
func (d *Decoder) WrongType(n *Node, want string) {
	hint := ""
	name := "the document"
	if len(d.path) > 0 {
		name = d.Path()
	}
	switch {
	case want == String.String() && (n.Kind == Int || n.Kind == Float || n.Kind == Bool):
		hint = "write it in quotes: " + Quote(n.Text)
	case want == aDuration && n.Kind == Int:
		hint = "write it with a unit: " + Quote(n.Text+"s")
	case want == Bool.String() && n.Kind == String:
		hint = "write true or false"
	case want == List.String() && n.Kind == String && len(n.Text) < 60:
		hint = "write a list: [" + n.Text + "]"
	case want == Map.String() && n.Kind == List:
		hint = "write keys with values, not a list with dashes"
	}
	d.Fail(n.Pos, CodeWrongType, fmt.Sprintf("%s must be %s, not %s", name, want, n.Kind), hint)
}

const aDuration = "a duration such as 30s"

func (d *Decoder) duration(n *Node, v reflect.Value) {
	if !d.scalar(n, aDuration, String) {
		return
	}
	t, err := time.ParseDuration(n.Text)
	if err != nil || t <= 0 {
		d.Fail(n.Pos, CodeBadValue, fmt.Sprintf("%s: %s is not a duration above zero", d.Path(), Quote(n.Text)), "write a number with a unit: 500ms, 30s, 2m")
		return
	}
	v.SetInt(int64(t))
}

func (d *Decoder) boolean(n *Node, v reflect.Value) {
	if !d.scalar(n, Bool.String(), Bool) {
		return
	}
	b, err := strconv.ParseBool(n.Text)
	if err != nil {
		d.Fail(n.Pos, CodeBadValue, fmt.Sprintf("%s: %s is not true or false", d.Path(), Quote(n.Text)), "")
		return
	}
	v.SetBool(b)
}

func (d *Decoder) integer(n *Node, v reflect.Value) {
	if !d.scalar(n, Int.String(), Int) {
		return
	}
	if digits := strings.TrimLeft(n.Text, "+-"); len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' {
		// Eight or ten? The versions of YAML disagree.
		d.Fail(n.Pos, CodeBadValue, fmt.Sprintf("%s: %s begins with a zero", d.Path(), Quote(n.Text)), "write it without, or 0o… for an octal number")
		return
	}
	i, err := strconv.ParseInt(n.Text, 0, 64)
	if err != nil || v.OverflowInt(i) {
		d.Fail(n.Pos, CodeBadValue, fmt.Sprintf("%s: %s is not an integer", d.Path(), Quote(n.Text)), "")
		return
	}
	v.SetInt(i)
}

func (d *Decoder) number(n *Node, v reflect.Value) {
	if !d.scalar(n, Float.String(), Float, Int) {
		return
	}
	f, err := strconv.ParseFloat(n.Text, 64)
	if err != nil || f != f || f > 1e300 || f < -1e300 {
		d.Fail(n.Pos, CodeBadValue, fmt.Sprintf("%s: %s is not a finite number", d.Path(), Quote(n.Text)), "")
		return
	}
	v.SetFloat(f)
}

func (d *Decoder) list(n *Node, v reflect.Value) {
	if n.Kind != List {
		d.WrongType(n, List.String())
		return
	}
	list := reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items))
	for i, item := range n.Items {
		d.Decode(item, list.Index(i).Addr().Interface(), strconv.Itoa(i))
	}
	v.Set(list)
}

func (d *Decoder) named(n *Node, v reflect.Value) {
	if n.Kind != Map {
		d.WrongType(n, Map.String())
		return
	}
	list := reflect.MakeSlice(v.Type(), len(n.Entries), len(n.Entries))
	for i, e := range n.Entries {
		item := list.Index(i)
		item.FieldByName("Key").SetString(e.Key)
		item.FieldByName("KeyPos").Set(reflect.ValueOf(e.KeyPos))
		d.Decode(e.Value, item.FieldByName("V").Addr().Interface(), e.Key)
	}
	v.Set(list)
}

// field is a field of a struct with the keys that name it.
type field struct {
	index    []int
	keys     []string // the usual spelling first
	required bool
}

// Keys returns the keys that Decode knows for a struct type, other spellings
// included.
func Keys[T any]() []string {
	var keys []string
	for _, f := range fields(reflect.TypeFor[T]()) {
		keys = append(keys, f.keys...)
	}
	return keys
}

func fields(t reflect.Type) []field {
	var fs []field
	for i := range t.NumField() {
		tag, ok := t.Field(i).Tag.Lookup("key")
		if sf := t.Field(i); !ok && sf.Anonymous && sf.IsExported() && sf.Type.Kind() == reflect.Struct {
			for _, f := range fields(sf.Type) {
				f.index = append([]int{i}, f.index...)
				fs = append(fs, f)
			}
		}
		if !ok || tag == "@" {
			continue
		}
		keys, option, _ := strings.Cut(tag, ",")
		f := field{index: []int{i}, required: option == "required"}
		for key := range strings.SplitSeq(keys, "|") {
			f.keys = append(f.keys, key)
			if snake := snakeCase(key); snake != key {
				f.keys = append(f.keys, snake)
			}
		}
		fs = append(fs, f)
	}
	return fs
}

func (d *Decoder) structure(n *Node, v reflect.Value) {
	place(v, n.Pos)
	if n.Kind != Map {
		d.WrongType(n, Map.String())
		return
	}
	fs := fields(v.Type())
	given := make([]*Entry, len(fs))
	for _, e := range n.Entries {
		i := find(fs, e.Key)
		switch {
		case i < 0:
			d.unknown(e, fs)
		case given[i] != nil:
			d.Fail(e.KeyPos, CodeDuplicateKey,
				fmt.Sprintf("%q and %q are the same key%s", given[i].Key, e.Key, d.in()), "keep one")
		default:
			given[i] = &e
			d.Decode(e.Value, v.FieldByIndex(fs[i].index).Addr().Interface(), e.Key)
		}
	}
	for i, f := range fs {
		e := given[i]
		switch {
		case !f.required || e != nil && e.Value.Kind != Null:
		case e != nil:
			d.Fail(e.KeyPos, CodeMissing, fmt.Sprintf("%q%s is empty", e.Key, d.in()), "give it a value")
		default:
			d.Fail(n.Pos, CodeMissing, fmt.Sprintf("%q is missing%s", f.keys[0], d.in()), "")
		}
		if to := v.FieldByIndex(f.index); e == nil && isAt(to.Type()) {
			to.FieldByName("Pos").Set(reflect.ValueOf(n.Pos))
		}
	}
}

// place sets the fields that take the place of the map itself.
func place(v reflect.Value, pos Pos) {
	for i := range v.NumField() {
		switch sf := v.Type().Field(i); {
		case sf.Tag.Get("key") == "@" && sf.Type == reflect.TypeFor[Pos]():
			v.Field(i).Set(reflect.ValueOf(pos))
		case sf.Anonymous && sf.IsExported() && sf.Tag.Get("key") == "" && sf.Type.Kind() == reflect.Struct && sf.Type != reflect.TypeFor[Pos]():
			place(v.Field(i), pos)
		}
	}
}

func (d *Decoder) unknown(e Entry, fs []field) {
	if d.issues.full() {
		return
	}
	// The hint offers the spelling that the writer uses: snake_case to one who
	// writes snake_case.
	var all, usual []string
	for _, f := range fs {
		all = append(all, f.keys...)
		usual = append(usual, f.keys[0])
	}
	known := usual
	if (strings.Contains(e.Key, "_") || Nearest(e.Key, usual) == "") && Nearest(e.Key, all) != "" {
		known = all
	}
	hint := DidYouMean(e.Key, known)
	d.Fail(e.KeyPos, CodeUnknownKey, fmt.Sprintf("unknown key %s%s", Quote(e.Key), d.in()), hint)
}

func (d *Decoder) in() string {
	if len(d.path) == 0 {
		return ""
	}
	return " in " + d.Path()
}

// find returns the index of the field that a key names, or -1.
func find(fs []field, key string) int {
	return slices.IndexFunc(fs, func(f field) bool { return slices.Contains(f.keys, key) })
}

func isAt(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.PkgPath() == reflect.TypeFor[Pos]().PkgPath() && strings.HasPrefix(t.Name(), "At[")
}

func isNamed(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.PkgPath() == reflect.TypeFor[Pos]().PkgPath() && strings.HasPrefix(t.Name(), "Named[")
}

func snakeCase(key string) string {
	var b strings.Builder
	for i, r := range key {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
