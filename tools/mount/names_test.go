package mount

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
)

// The names that Windows takes for others are judged by a function that needs no Windows.
func TestWindowsNames(t *testing.T) {
	for name, want := range map[string]string{
		"": "", ".": "", "..": "", "a.txt": "", ".git": "", "a b": "", "console": "", "com": "", "com10": "", "lpt": "", "nul0": "", "xcon": "", "auxiliary.txt": "",
		"COM١": "", "con-1": "", "conout": "",
		"con": "a device", "CON": "a device", "Con.txt": "a device", "nul.tar.gz": "a device", "aux .txt": "a device", "prn": "a device",
		"com1": "a device", "COM0": "a device", "lpt9.log": "a device", "com¹": "a device", "LPT³.x": "a device", "conin$": "a device", "CONOUT$": "a device",
		"a.": "a dot or a space", "a ": "a dot or a space", "...": "a dot or a space", "a. .": "a dot or a space", "con.": "a dot or a space",
		"a:b": "reserves", "c:": "reserves", "a.txt::$DATA": "reserves", "a?": "reserves", "a*b": "reserves", `a"`: "reserves", "a<b": "reserves", "a>b": "reserves", "a|b": "reserves",
	} {
		err := checkWindows(name)
		switch {
		case want == "" && err != nil:
			t.Errorf("%q is refused: %v", name, err)
		case want != "" && (!errors.Is(err, fs.ErrInvalid) || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want an error with %q", name, err, want)
		}
	}
}

func TestNamesThatLookAlike(t *testing.T) {
	for _, pair := range [][2]string{{"private", "PRIVATE"}, {"é", "e\u0301"}, {"ß", "ss"}, {"ﬁle", "file"}, {"K", "k"}, {"pri\u200cvate", "private"}, {"Σ", "ς"}} {
		if !alike(pair[0], pair[1]) || !alike(pair[1], pair[0]) {
			t.Errorf("%+q and %+q are told apart", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{{"private", "privates"}, {"é", "e"}, {"а", "a"}, {"prıvate", "private"}} {
		if alike(pair[0], pair[1]) {
			t.Errorf("%+q and %+q are one", pair[0], pair[1])
		}
	}
}
