package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func objects() []string {
	return []string{
		`{}`, ` { "a" : 1 , "b":[1,{"a":2}] } `, `{"a":"x\"}","a":{"b":"]"}}`, `{"":null,"\u0061":true,"A":-1.5e3}`,
		`{"a":"\\","b":"\\\""}`, `{"a":[],"b":{}}`, `[1]`, `"a"`, `7`, ``, `{`, `{"a"`, `{"a":`, `{"a":1,`, `{"a":"\`,
	}
}

func TestMembers(t *testing.T) {
	for _, in := range objects() {
		sameMembers(t, in)
	}
	if v, ok := Member([]byte(`{"_META":1}`), "_meta"); ok {
		t.Errorf("a name in another case is taken: %s", v)
	}
}

func FuzzMembers(f *testing.F) {
	for _, in := range objects() {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) { sameMembers(t, in) })
}

// sameMembers holds Members against the standard decoder, and against anything at
// all that it must not panic on.
func sameMembers(t *testing.T, in string) {
	t.Helper()
	got := map[string]json.RawMessage{}
	for name, value := range Members([]byte(in)) {
		got[string(name)] = value
	}
	var want map[string]json.RawMessage
	if json.Unmarshal([]byte(in), &want) != nil || strings.ContainsRune(in, '\uFFFD') || strings.Contains(in, `\u`) && len(got) != len(want) {
		return
	}
	if !bytes.Equal([]byte(in), []byte(strings.ToValidUTF8(in, ""))) {
		return
	}
	for name, value := range want {
		if !bytes.Equal(bytes.TrimSpace(got[name]), bytes.TrimSpace(value)) {
			t.Errorf("%s: %q is %s here and %s to the decoder", in, name, got[name], value)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d members here, %d to the decoder", in, len(got), len(want))
	}
}
