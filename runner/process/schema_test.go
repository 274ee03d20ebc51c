package process

import "testing"

func TestAcceptJudgesByASchema(t *testing.T) {
	accept, err := Accept([]byte(`{"type":"object","required":["agent"]}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := accept(t.Context(), "Well: {\"agent\":\"a\"}"); err != nil {
		t.Error(err)
	}
	if err := accept(t.Context(), "{}"); err == nil {
		t.Error("no agent, and accepted")
	}
	if accept, err := Accept(nil); accept != nil || err != nil {
		t.Error("no schema asks for nothing", err)
	}
	if _, err := Accept([]byte(`{"$ref":"#"}`)); err == nil {
		t.Error("a schema that is none")
	}
}
