package shell

import (
	"slices"
	"testing"
)

func TestWords(t *testing.T) {
	for line, want := range map[string][]string{
		"":                      nil,
		" \t ":                  nil,
		"ls":                    {"ls"},
		" a  b\tc ":             {"a", "b", "c"},
		`'' "" a''b`:            {"", "", "ab"},
		`'a b'"c d"e`:           {"a bc de"},
		`a\ b \\ \"`:            {"a b", `\`, `"`},
		`"a\"b\\c\d\$e"`:        {`a"b\c\d$e`},
		`'a\b' '$x' '*|;'`:      {`a\b`, "$x", "*|;"},
		"a\\\nb \"c\\\nd\"":     {"ab", "cd"},
		`\*  \; \| a\#b a#b`:    {"*", ";", "|", "a#b", "a#b"},
		`a$ "$" "a $ b" 5$`:     {"a$", "$", "a $ b", "5$"},
		`{} {a} a~b --x={y}`:    {"{}", "{a}", "a~b", "--x={y}"},
		`"*" "~" "a;b" "#"`:     {"*", "~", "a;b", "#"},
		`é "日本" 'ü'`:            {"é", "日本", "ü"},
		"!x ^y %z @{u} a=b c:d": {"!x", "^y", "%z", "@{u}", "a=b", "c:d"},
	} {
		got, err := words(line)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", line, got, err, want)
		}
	}
}
