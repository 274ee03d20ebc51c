package crew

import (
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"crewhost/config/strict"
)

// TestEveryKeyIsInTestdata holds the test crews to the schema: each key is read
// from a crew of testdata, good or bad, in one spelling at least.
func TestEveryKeyIsInTestdata(t *testing.T) {
	var all strings.Builder
	err := fs.WalkDir(os.DirFS("testdata"), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !isYAML(path) {
			return err
		}
		data, err := os.ReadFile("testdata/" + path)
		all.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, m := range regexp.MustCompile(`([A-Za-z_]+):`).FindAllStringSubmatch(all.String(), -1) {
		used[fold(m[1])] = true
	}
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || seen[typ] || typ == reflect.TypeFor[strict.Node]() {
			return
		}
		seen[typ] = true
		for i := range typ.NumField() {
			f := typ.Field(i)
			for key := range strings.SplitSeq(strings.TrimSuffix(f.Tag.Get("key"), ",required"), "|") {
				if key != "" && key != "@" && !used[fold(key)] {
					t.Errorf("%s.%s: no crew of testdata has the key %s", typ.Name(), f.Name, key)
				}
			}
			walk(f.Type)
		}
	}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[crewDoc](), reflect.TypeFor[agentDoc](), reflect.TypeFor[taskDoc](),
		reflect.TypeFor[crewaiAgent](), reflect.TypeFor[crewaiTask](),
	} {
		walk(typ)
	}
}
