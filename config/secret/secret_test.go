package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
)

const hunter = "hunter2-Xq9"

// holders are structs in which a program may keep secrets, fields of both kinds.
type holder struct {
	Value   Value
	Text    Text
	Ref     Ref
	private Value
	text    Text
	Pointer *Value
	List    []Value
	Map     map[string]Value
	Any     any
}

func holders() map[string]any {
	v := New(hunter)
	t := NewText("Bearer ${TOKEN}", "Bearer "+hunter, v)
	h := holder{v, t, Ref{Source: FromLiteral, Value: v}, v, t, &v, []Value{v}, map[string]Value{"k": v}, v}
	return map[string]any{
		"value": v, "pointer": &v, "text": t, "text pointer": &t, "struct": h, "struct pointer": &h,
		"list": []any{v, t, h}, "map": map[string]any{"a": v, "b": h}, "ref": Ref{Source: FromEnv, Name: "X", Value: v},
	}
}

// TestNothingShowsASecret is K55 for every way that Go has of writing a value.
func TestNothingShowsASecret(t *testing.T) {
	check := func(t *testing.T, how, out string) {
		t.Helper()
		for _, form := range []string{hunter, fmt.Sprintf("%x", hunter), fmt.Sprintf("%X", hunter), fmt.Sprintf("%v", []byte(hunter))} {
			if strings.Contains(out, form) {
				t.Errorf("%s shows it: %s", how, out)
			}
		}
	}
	for name, v := range holders() {
		t.Run(name, func(t *testing.T) {
			for verb := 'A'; verb <= 'z'; verb++ {
				if verb == 'p' || verb == 'T' || verb > 'Z' && verb < 'a' {
					continue
				}
				for _, flag := range []string{"", "+", "#", " ", "-40", "040", ".3"} {
					check(t, "%"+flag+string(verb), fmt.Sprintf("%"+flag+string(verb), v))
				}
			}
			check(t, "Sprint", fmt.Sprint(v))
			check(t, "an error", fmt.Errorf("calling: %w (%v)", errors.New("no"), v).Error())

			var b bytes.Buffer
			level := &slog.HandlerOptions{Level: slog.LevelDebug}
			for _, h := range []slog.Handler{slog.NewTextHandler(&b, level), slog.NewJSONHandler(&b, level)} {
				log := slog.New(h)
				log.Info("m", "v", v)
				log.With("w", v).WithGroup("g").Info("m", slog.Any("a", v), slog.Group("h", slog.Any("b", v)))
				log.Info(fmt.Sprint(v))
			}
			check(t, "slog", b.String())

			for encoder, encode := range map[string]func(any) ([]byte, error){
				"json": json.Marshal,
				"xml":  xml.Marshal,
				"yaml": yaml.Marshal,
				"gob": func(v any) ([]byte, error) {
					var b bytes.Buffer
					err := gob.NewEncoder(&b).Encode(v)
					return b.Bytes(), err
				},
			} {
				out, err := encode(v) // some cannot encode everything, and say so
				check(t, encoder, string(out))
				if err != nil {
					check(t, encoder+"'s error", err.Error())
				}
			}
			equal := cmp.Equal(v, v, cmp.AllowUnexported(holder{}))
			check(t, "go-cmp", cmp.Diff(v, nil, cmp.AllowUnexported(holder{})))
			if !equal {
				t.Error("a value is not equal to itself")
			}
		})
	}
}

func TestValue(t *testing.T) {
	v := New(hunter)
	if v.Reveal() != hunter || v.IsZero() || v.String() != Mask || fmt.Sprintf("%#v", v) != Mask {
		t.Errorf("%v %q", v, v.Reveal())
	}
	var zero Value
	if !zero.IsZero() || zero.Reveal() != "" || !New("").IsZero() {
		t.Error("the zero value is not empty")
	}
	if !v.Equal(New(hunter)) || v.Equal(New("other")) || v.Equal(zero) || !zero.Equal(New("")) {
		t.Error("Equal")
	}
}

func TestText(t *testing.T) {
	x := NewText("Bearer ${T}", "Bearer "+hunter, New(hunter))
	if x.Reveal() != "Bearer "+hunter || x.String() != "Bearer ${T}" || len(x.Secrets()) != 1 {
		t.Errorf("%v", x)
	}
	if got := fmt.Sprintf("%s|%v|%q", x, x, x); got != `Bearer ${T}|Bearer ${T}|"Bearer ${T}"` {
		t.Error(got)
	}
	if l := Literal("npx"); l.Reveal() != "npx" || l.String() != "npx" || l.Secrets() != nil || l.IsZero() {
		t.Error(l)
	}
	if (Text{}).Reveal() != "" || !(Text{}).IsZero() {
		t.Error("the zero text is not empty")
	}
}

func TestRefSaysNoSecret(t *testing.T) {
	for want, r := range map[string]Ref{
		"(none)":     {},
		"env:KEY":    {Source: FromEnv, Name: "KEY", Value: New(hunter)},
		"file:/k":    {Source: FromFile, Name: "/k"},
		"command:op": {Source: FromCommand, Name: "op", Args: []string{hunter}},
		FromLiteral:  {Source: FromLiteral, Value: New(hunter)},
	} {
		if got := r.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestRedactor(t *testing.T) {
	var r Redactor
	if got := r.Redact("text " + hunter); got != "text "+hunter {
		t.Error(got)
	}
	r.Add(New(hunter), New("abc"), New(""), New(hunter+"-longer"), New("q&\"x y"), New("-----BEGIN KEY-----\nMIIEvQIBADANB\nab\n-----END KEY-----\n"))
	r.Add(New("sk-test-123"))
	for in, want := range map[string]string{
		"a " + hunter + " b " + hunter:                        "a ••• b •••",
		"a " + hunter + "-longer":                             "a •••",
		"abc stays, it is too short":                          "abc stays, it is too short",
		"?k=q%26%22x+y&l=q%26%22x%20y":                        "?k=•••&l=•••",
		`{"k":"q\u0026\"x y"}`:                                `{"k":"•••"}`,
		"MIIEvQIBADANB":                                       "•••",
		"sk-test-123 and sk-learning":                         "••• and sk-learning",
		"an unknown ghp_0123456789abcdef0123456789abcdef0123": "an unknown •••",
	} {
		if got := r.Redact(in); got != want {
			t.Errorf("Redact(%q) = %q, want %q", in, got, want)
		}
	}
	if got := (*Redactor)(nil).Redact("x"); got != "x" {
		t.Error(got)
	}
}

// TestRedactorIsConcurrent runs under the race detector.
func TestRedactorIsConcurrent(t *testing.T) {
	var r Redactor
	var out bytes.Buffer
	w := r.Writer(&out)
	done := make(chan struct{})
	for i := range 8 {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 50 {
				r.Add(New(fmt.Sprintf("secret-%d", i)))
				_, _ = fmt.Fprintf(w, "line secret-%d\n", i)
			}
		}()
	}
	for range 8 {
		<-done
	}
	if err := w.Close(); err != nil || strings.Contains(out.String(), "secret-") || strings.Count(out.String(), "\n") != 400 {
		t.Error(err, out.String())
	}
}

func TestRedactingWriter(t *testing.T) {
	var r Redactor
	r.Add(New(hunter))
	var out bytes.Buffer
	w := r.Writer(&out)
	for _, p := range []string{"a hun", "ter2-Xq", "9 b\nnext " + hunter + "\n", "tail hunter2", "-Xq9"} {
		if n, err := io.WriteString(w, p); n != len(p) || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := out.String(); got != "a ••• b\nnext •••\n" {
		t.Errorf("before Close: %q", got)
	}
	if err := w.Close(); err != nil || out.String() != "a ••• b\nnext •••\ntail •••" {
		t.Errorf("after Close: %q", out.String())
	}
}

// TestRedactingWriterBoundsALine: a line without end is not kept, and no secret
// slips through where it is cut.
func TestRedactingWriterBoundsALine(t *testing.T) {
	var r Redactor
	r.Add(New(hunter), New("another-secret-of-some-length"))
	for chunk := 1; chunk < 40_000; chunk = chunk*3 + 1 {
		var out bytes.Buffer
		w := r.Writer(&out).(*writer)
		in := strings.Repeat("x"+hunter+"another-secret-of-some-length", 8_000)
		for p := in; p != ""; {
			n := min(chunk, len(p))
			if _, err := io.WriteString(w, p[:n]); err != nil {
				t.Fatal(err)
			}
			p = p[n:]
			if len(w.line) > maxLine+1000 {
				t.Fatalf("keeps %d bytes", len(w.line))
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if want := strings.Repeat("x"+Mask+Mask, 8_000); out.String() != want {
			t.Fatalf("chunks of %d: %d bytes, want %d", chunk, out.Len(), len(want))
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestRedactingWriterReportsErrors(t *testing.T) {
	w := (*Redactor)(nil).Writer(brokenWriter{})
	if _, err := io.WriteString(w, "no line yet"); err != nil {
		t.Error(err)
	}
	if _, err := io.WriteString(w, "\n"); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

// FuzzRedactingWriter: however a text is cut, what comes out is what Redact
// makes of its lines.
func FuzzRedactingWriter(f *testing.F) {
	f.Add("a hunter2-Xq9 b\nhunter2", 3)
	f.Add("hunter2-Xq9hunter2-Xq9\n\n", 1)
	f.Fuzz(func(t *testing.T, in string, chunk int) {
		var r Redactor
		r.Add(New(hunter), New("r2-X"))
		var out bytes.Buffer
		w := r.Writer(&out)
		for p := in; p != ""; {
			n := min(max(1, chunk), len(p))
			if _, err := io.WriteString(w, p[:n]); err != nil {
				t.Fatal(err)
			}
			p = p[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), hunter) {
			t.Errorf("%q", out.String())
		}
	})
}

// TestSpellings: a secret is known however it is written, and wherever it stands in
// what is encoded.
func TestSpellings(t *testing.T) {
	const s = `pa"ss\wörd<&>/+ %7`
	var r Redactor
	r.Add(New(s))
	for before := range 7 {
		for after := range 5 {
			whole := strings.Repeat("u", before) + s + strings.Repeat("v", after)
			for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
				got := r.Redact(enc.EncodeToString([]byte(whole)))
				rest, err := base64.RawURLEncoding.DecodeString(strings.NewReplacer("+", "-", "/", "_", "=", "").Replace(strings.ReplaceAll(got, Mask, "")))
				if !strings.Contains(got, Mask) || err == nil && strings.ContainsAny(string(rest), "ps") {
					t.Errorf("%d, %d: %s", before, after, got)
				}
			}
		}
	}
	plain, _ := json.Marshal(s)
	for _, text := range []string{
		s, url.QueryEscape(s), url.PathEscape(s), string(plain), strconv.Quote(s), strconv.QuoteToASCII(s),
		hex.EncodeToString([]byte(s)), fmt.Sprintf("%X", s), `{"a":"pa\"ss\\wörd<&>/+ %7"}`,
	} {
		if got := r.Redact(text); !strings.Contains(got, Mask) || strings.Contains(got, "rd") {
			t.Errorf("%s: %s", text, got)
		}
	}
}
