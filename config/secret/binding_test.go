package secret

import "testing"

// TestBinding: what is one server to a credential (A8).
func TestBinding(t *testing.T) {
	for in, want := range map[string]string{
		"HTTPS://MCP.Example.COM:443/Path/": "https://mcp.example.com/Path",
		"http://localhost:80":               "http://localhost",
		"https://a/b?x=1#f":                 "https://a/b?x=1",
		"https://u:p@a/":                    "https://a",
		"http://[::1]:8080/mcp":             "http://[::1]:8080/mcp",
		"https://[::1]:443/":                "https://[::1]",
		"https://a/%2Fb/":                   "https://a/%2Fb",
	} {
		got, err := Binding(in)
		if got != want || err != nil {
			t.Errorf("%s: %s, %v, want %s", in, got, err, want)
		}
		if again, err := Binding(got); again != got || err != nil {
			t.Errorf("%s: %s once more, %v", in, again, err)
		}
	}
	for _, in := range []string{"", "nowhere", "http://%zz"} {
		if _, err := Binding(in); err == nil {
			t.Errorf("%q is a URL", in)
		}
	}
}
