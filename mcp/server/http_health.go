package server

import "net/http"

// Where a supervisor asks how the server is. Both answer anybody, by any name and
// from any origin, with one word that tells nothing else.
const (
	healthPath = "/healthz" // is it alive?
	readyPath  = "/readyz"  // does it take requests? not any more, once it ends
)

// health answers with one word.
func health(w http.ResponseWriter, r *http.Request, ok bool) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	if !ok {
		http.Error(w, "ending", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n"))
}
