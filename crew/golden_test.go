package crew

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGood loads each crew of testdata/good and compares all that was read of
// it, places included, with its golden file: every layout (§1.2), every key in
// both spellings, anchors, CrewAI's pair.
func TestGood(t *testing.T) {
	for _, path := range entries(t, "testdata/good") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			c, err := Load(path)
			if err != nil {
				t.Fatal(err)
			}
			if !filepath.IsAbs(c.Path) {
				t.Errorf("Path = %q is not absolute", c.Path)
			}
			wd, _ := os.Getwd()
			c.Path = strings.TrimPrefix(filepath.ToSlash(c.Path), filepath.ToSlash(wd)+"/")
			golden(t, path, dump(c))
		})
	}
}

// TestBad compares all issues of each crew of testdata/bad with its golden
// file: every problem at once, in order, with place, hint and code (K63).
func TestBad(t *testing.T) {
	for _, path := range entries(t, "testdata/bad") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			c, err := Load(path)
			if err == nil {
				t.Fatal("loaded without an issue")
			}
			text := err.Error() + "\n"
			if c != nil && len(c.Warnings) > 0 {
				text += "warnings:\n" + c.Warnings.Error() + "\n"
			}
			golden(t, path, text)
		})
	}
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, e := range list {
		if filepath.Ext(e.Name()) != ".golden" {
			paths = append(paths, dir+"/"+e.Name())
		}
	}
	return paths
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	file := path + ".golden"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), filepath.ToSlash(got)); diff != "" {
		t.Errorf("differs from %s (-want +got):\n%s", file, diff)
	}
}

// dump writes what is set of a value, a line each, texts with their places.
func dump(v any) string {
	var b strings.Builder
	dumpValue(&b, "", reflect.ValueOf(v))
	return b.String()
}

func dumpValue(b *strings.Builder, path string, v reflect.Value) {
	switch x := v.Interface().(type) {
	case Text:
		if x.Set || x.V != "" {
			fmt.Fprintf(b, "%s = %q @ %s\n", path, x.V, x.Pos)
		}
		return
	case Pos:
		if x != (Pos{}) {
			fmt.Fprintf(b, "%s @ %s\n", path, x)
		}
		return
	case Inputs:
		for _, name := range x.names() {
			fmt.Fprintf(b, "%s.%s = %q\n", path, name, x[name])
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			if v.Elem().IsZero() {
				fmt.Fprintf(b, "%s = %v\n", path, v.Elem().Interface())
			}
			dumpValue(b, path, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			dumpValue(b, strings.TrimPrefix(path+"."+name, "."), v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			dumpValue(b, fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
	default:
		if !v.IsZero() {
			fmt.Fprintf(b, "%s = %v\n", path, v.Interface())
		}
	}
}
