package strict

import (
	"fmt"
	"reflect"
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
// not decoded. The tag "@" marks a field of type [Pos] that takes the place of
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

var (
	unmarshalerType = reflect.TypeFor[Unmarshaler]()
	nodeType        = reflect.TypeFor[*Node]()
	posType         = reflect.TypeFor[Pos]()
	durationType    = reflect.TypeFor[time.Duration]()
)

func (d *Decoder) value(n *Node, v reflect.Value) {
	switch {
	case v.Type() == nodeType:
		v.Set(reflect.ValueOf(n))
		return
	case v.CanAddr() && v.Addr().Type().Implements(unmarshalerType):
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
	case v.Type() == durationType:
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
	case want == Bool.String() && n.Kind == String:
		hint = "write true or false"
	case want == List.String() && n.Kind == String && len(n.Text) < 60:
		hint = "write a list: [" + n.Text + "]"
	case want == Map.String() && n.Kind == List:
		hint = "write keys with values, not a list with dashes"
	}
	d.Fail(n.Pos, CodeWrongType, fmt.Sprintf("%s must be %s, not %s", name, want, n.Kind), hint)
}

func (d *Decoder) duration(n *Node, v reflect.Value) {
	if !d.scalar(n, "a duration such as 30s", String) {
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
	index    int
	keys     []string // the usual spelling first
	required bool
}

func fields(t reflect.Type) []field {
	var fs []field
	for i := range t.NumField() {
		tag, ok := t.Field(i).Tag.Lookup("key")
		if !ok || tag == "@" {
			continue
		}
		keys, option, _ := strings.Cut(tag, ",")
		f := field{index: i, required: option == "required"}
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
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("key") == "@" && v.Field(i).Type() == posType {
			v.Field(i).Set(reflect.ValueOf(n.Pos))
		}
	}
	if n.Kind != Map {
		d.WrongType(n, Map.String())
		return
	}
	fs := fields(v.Type())
	given := make(map[int]Entry, len(n.Entries))
	for _, e := range n.Entries {
		f := find(fs, e.Key)
		if f == nil {
			d.unknown(e, fs)
			continue
		}
		if first, twice := given[f.index]; twice {
			d.Fail(e.KeyPos, CodeDuplicateKey,
				fmt.Sprintf("%q and %q are the same key%s", first.Key, e.Key, d.in()), "keep one")
			continue
		}
		given[f.index] = e
		d.Decode(e.Value, v.Field(f.index).Addr().Interface(), e.Key)
	}
	for _, f := range fs {
		e, ok := given[f.index]
		switch {
		case !f.required || ok && e.Value.Kind != Null:
		case ok:
			d.Fail(e.KeyPos, CodeMissing, fmt.Sprintf("%q%s is empty", e.Key, d.in()), "give it a value")
		default:
			d.Fail(n.Pos, CodeMissing, fmt.Sprintf("%q is missing%s", f.keys[0], d.in()), "")
		}
		if !ok && isAt(v.Field(f.index).Type()) {
			v.Field(f.index).FieldByName("Pos").Set(reflect.ValueOf(n.Pos))
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
	hint := ""
	if near := Nearest(e.Key, usual); near != "" && !strings.Contains(e.Key, "_") {
		hint = DidYouMean(e.Key, usual)
	} else if near := Nearest(e.Key, all); near != "" {
		hint = DidYouMean(e.Key, all)
	} else {
		hint = DidYouMean(e.Key, usual)
	}
	d.Fail(e.KeyPos, CodeUnknownKey, fmt.Sprintf("unknown key %s%s", Quote(e.Key), d.in()), hint)
}

func (d *Decoder) in() string {
	if len(d.path) == 0 {
		return ""
	}
	return " in " + d.Path()
}

func find(fs []field, key string) *field {
	for i := range fs {
		for _, k := range fs[i].keys {
			if k == key {
				return &fs[i]
			}
		}
	}
	return nil
}

func isAt(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.PkgPath() == posType.PkgPath() && strings.HasPrefix(t.Name(), "At[")
}

func isNamed(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.PkgPath() == posType.PkgPath() && strings.HasPrefix(t.Name(), "Named[")
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
