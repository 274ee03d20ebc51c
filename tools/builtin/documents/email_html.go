package documents

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// htmlText is what a person reads of a page: its text, with its lines where its blocks
// are, and the addresses of links behind them. It goes through the page once and makes
// no tree of it.
func htmlText(page string) string {
	var w htmlWriter
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return w.text()
		case html.TextToken:
			w.write(string(z.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			token := z.Token()
			w.start(token)
		case html.EndTagToken:
			w.end(z.Token())
		}
	}
}

type htmlWriter struct {
	b      strings.Builder
	hidden atom.Atom // an element that nobody reads, until its end
	link   string
	label  int // where the link's text begins
	pre    int
}

func (w *htmlWriter) start(t html.Token) {
	if w.hidden != 0 {
		return
	}
	switch t.DataAtom {
	case atom.Script, atom.Style, atom.Title, atom.Noscript, atom.Template, atom.Svg:
		if t.Type == html.StartTagToken {
			w.hidden = t.DataAtom
		}
	case atom.Br:
		w.b.WriteByte('\n')
	case atom.Li:
		w.line()
		w.b.WriteString("- ")
	case atom.Td, atom.Th:
		if s := w.b.String(); s != "" && s[len(s)-1] != '\n' {
			w.b.WriteByte(' ')
		}
	case atom.Pre:
		w.pre++
		w.line()
	case atom.A:
		w.link, w.label = "", w.b.Len()
		for _, a := range t.Attr {
			if a.Key == "href" && (strings.HasPrefix(a.Val, "http") || strings.HasPrefix(a.Val, "mailto:")) && len(a.Val) < 500 {
				w.link = a.Val
			}
		}
	case atom.Img:
		for _, a := range t.Attr {
			if a.Key == "alt" && strings.TrimSpace(a.Val) != "" {
				w.write("[" + a.Val + "]")
			}
		}
	default:
		w.block(t.DataAtom)
	}
}

func (w *htmlWriter) end(t html.Token) {
	if w.hidden != 0 {
		if t.DataAtom == w.hidden {
			w.hidden = 0
		}
		return
	}
	switch t.DataAtom {
	case atom.Pre:
		w.pre = max(0, w.pre-1)
		w.line()
	case atom.A:
		label := strings.TrimSpace(w.b.String()[w.label:])
		if w.link != "" && label != w.link && "mailto:"+label != w.link {
			w.b.WriteString(" (" + w.link + ")")
		}
		w.link = ""
	default:
		w.block(t.DataAtom)
	}
}

func (w *htmlWriter) block(a atom.Atom) {
	switch a {
	case atom.P, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Table, atom.Ul, atom.Ol, atom.Blockquote, atom.Hr:
		w.line()
		w.b.WriteByte('\n')
	case atom.Div, atom.Tr, atom.Li, atom.Section, atom.Article, atom.Header, atom.Footer, atom.Body:
		w.line()
	}
}

// line begins a new line unless one has begun.
func (w *htmlWriter) line() {
	if s := w.b.String(); s != "" && s[len(s)-1] != '\n' {
		w.b.WriteByte('\n')
	}
}

func (w *htmlWriter) write(text string) {
	if w.hidden != 0 {
		return
	}
	if w.pre > 0 {
		w.b.WriteString(text)
		return
	}
	words := strings.Join(strings.Fields(text), " ")
	s := w.b.String()
	begins := s == "" || s[len(s)-1] == '\n' || s[len(s)-1] == ' '
	if strings.TrimLeft(text, " \t\r\n") != text && !begins {
		w.b.WriteByte(' ')
	}
	w.b.WriteString(words)
	if words != "" && strings.TrimRight(text, " \t\r\n") != text {
		w.b.WriteByte(' ')
	}
}

// text is the whole, without blanks at the ends of lines and with one empty line at most.
func (w *htmlWriter) text() string {
	var lines []string
	for line := range strings.Lines(w.b.String()) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" && (len(lines) == 0 || lines[len(lines)-1] == "") {
			continue
		}
		lines = append(lines, line)
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
