package runner

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/config/secret"
	"crewhost/tools"
	"crewhost/tools/permission"
)

// Nothing of a result holds a secret of the settings, however it is written there;
// what only looks like a secret is left alone.
func TestMaskResult(t *testing.T) {
	h := &Host{cfg: Config{Redactor: &secret.Redactor{}}}
	h.cfg.Redactor.Add(secret.New("hunter2\"x"), secret.New("482913"))
	const token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	given := tools.Result{
		Content: []tools.Content{
			{Kind: tools.KindText, Text: `key hunter2"x, ` + token},
			{Kind: tools.KindResource, URI: "file:///482913", Name: "482913", MIME: "text/plain; charset=utf-8", Data: []byte("a 482913 b")},
			{Kind: tools.KindResource, MIME: "application/vnd.api+json", Data: []byte(`{"a":"482913"}`)},
			{Kind: tools.KindImage, MIME: "image/png", Data: []byte("482913")},
			{Kind: tools.KindUnknown, Raw: json.RawMessage(`{"k":"hunter2\u0022x"}`)},
		},
		Structured: json.RawMessage(`{"pin": 482913, "n":-1.5e3, "s":["\u0034\u00382913"], "482913":true, "t":"` + token + `"}`),
	}
	before, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	got, err := h.maskResult(t.Context(), permission.Observation{}, func(context.Context) (tools.Result, error) { return given, nil })
	if err != nil {
		t.Fatal(err)
	}
	want := tools.Result{
		Content: []tools.Content{
			{Kind: tools.KindText, Text: "key •••, " + token},
			{Kind: tools.KindResource, URI: "file:///•••", Name: "•••", MIME: "text/plain; charset=utf-8", Data: []byte("a ••• b")},
			{Kind: tools.KindResource, MIME: "application/vnd.api+json", Data: []byte(`{"a":"•••"}`)},
			{Kind: tools.KindImage, MIME: "image/png", Data: []byte("482913")},
			{Kind: tools.KindUnknown, Raw: json.RawMessage(`{"k":"•••"}`)},
		},
		Structured: json.RawMessage(`{"pin": "•••", "n":-1.5e3, "s":["•••"], "•••":true, "t":"` + token + `"}`),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if after, _ := json.Marshal(given); string(after) != string(before) {
		t.Error("what the tool gave was changed in its hands")
	}
}

func TestMaskError(t *testing.T) {
	h := &Host{cfg: Config{Redactor: &secret.Redactor{}}}
	h.cfg.Redactor.Add(secret.New("hunter22"))
	plain := errors.New("no secret")
	for _, err := range []error{
		errors.New("with hunter22"),
		&tools.Error{Code: tools.CodeTransportFailed, Detail: "said hunter22", Err: errors.New("hunter22")},
		plain,
	} {
		_, got := h.maskResult(t.Context(), permission.Observation{}, func(context.Context) (tools.Result, error) { return tools.Result{}, err })
		if strings.Contains(got.Error(), "hunter22") || tools.CodeOf(got) != tools.CodeOf(err) {
			t.Errorf("%v became %v", err, got)
		}
		var known *tools.Error
		if errors.As(got, &known) && strings.Contains(known.Unwrap().Error(), "hunter22") {
			t.Errorf("the cause says %v", known.Unwrap())
		}
		if errors.Is(err, plain) && !errors.Is(got, plain) {
			t.Errorf("%v became %v", err, got)
		}
	}
}
