package documents_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"crewhost/tools/native/nativetest"
)

const books = `<?xml version="1.0"?>
<!DOCTYPE shelf SYSTEM "file:///etc/passwd">
<shelf xmlns:dc="http://purl.org/dc/elements/1.1/">
  <!-- two books -->
  <book id="1" lang="en"><title>Tides &amp; Ports</title><dc:creator>Ann</dc:creator><price>8.95</price></book>
  <book id="2" lang="de"><title><![CDATA[<Ebbe>]]></title><dc:creator>Jörg</dc:creator><price>12.99</price></book>
</shelf>`

func xp(xpath string) string { return nativetest.Args("input", books, "xpath", xpath) }

func TestXMLQuery(t *testing.T) {
	b := newBench(t)
	for xpath, want := range map[string]string{
		"//book[@lang='de']/title":                    "<title>&lt;Ebbe&gt;</title>",
		"//book/@id":                                  "1\n2",
		"//book/title/text()":                         "Tides & Ports\n<Ebbe>",
		"//dc:creator":                                "<dc:creator>Ann</dc:creator>\n<dc:creator>Jörg</dc:creator>",
		"//book[price > 10]/dc:creator/text()":        "Jörg",
		"count(//book)":                               "2",
		"sum(//price)":                                "21.939999999999998",
		"string(//title)":                             "Tides & Ports",
		"boolean(//magazine)":                         "false",
		"//book[last()]/@lang | //book[1]/@id":        "1\nde",
		"//comment()":                                 "two books",
		"//book[contains(title, 'Ports')]/price":      "<price>8.95</price>",
		"local-name(//dc:creator)":                    "creator",
		"//magazine":                                  "",
		"//book[2]/preceding-sibling::book/@id":       "1",
		"//price/ancestor::shelf/book[1]/@id":         "1",
		"concat(//book[1]/@id, '-', //book[2]/@lang)": "1-de",
		"translate('abc', 'b', 'x')":                  "axc",
	} {
		if want == "" {
			b.WantFailure("xml_parser", xp(xpath), "selects nothing; the elements are shelf, book, title, dc:creator, price. Names match as they are written")
			continue
		}
		b.WantText("xml_parser", xp(xpath), want)
	}
	b.WantText("xml_parser", nativetest.Args("input", books, "xpath", "//book", "output", "text"), "Tides & PortsAnn8.95\n<Ebbe>Jörg12.99")
	b.WantText("xml_parser", nativetest.Args("input", books, "xpath", "//c:creator/text()", "namespaces", map[string]string{"c": "http://purl.org/dc/elements/1.1/"}), "Ann\nJörg")
	b.WantFailure("xml_parser", xp("//c:creator"), "prefix c not defined", "prefixes are dc;")
	b.WantFailure("xml_parser", xp("//book["), "can't be")
	b.WantFailure("xml_parser", xp("nosuch(//book)"), "can't be")
	b.WantFailure("xml_parser", xp("substring(//book, 'x')"), "can't be used")
	b.WantFailure("xml_parser", xp(`replace ('a', "a", 'b')`), "not available")
	b.WantText("xml_parser", xp("string('replace(')"), "replace(")
	// A second declaration of a prefix, and default ones.
	doc := `<a xmlns="urn:1" xmlns:p="urn:2"><b/><p:b n="2"/><c xmlns="urn:3" xmlns:p="urn:4"><b n="3"/><p:b n="4" p:x="5"/></c></a>`
	for xpath, want := range map[string]string{"//q:b/@n": "4", "//r:b/@n": "3", "//q:b/@q:x": "5", "count(//b)": "2", "//p:b/@n": "2", "namespace-uri(//c)": "urn:3"} {
		b.WantText("xml_parser", nativetest.Args("input", doc, "xpath", xpath, "namespaces", map[string]string{"q": "urn:4", "r": "urn:3"}), want)
	}
}

// TestXMLQueryKeepsTheOrder holds results to the order of the document, each once.
func TestXMLQueryKeepsTheOrder(t *testing.T) {
	b := newBench(t)
	const doc = `<r><s><b id="1"><b id="2"/><b id="3"/></b><b id="4"/><c><b id="5"/><d><b id="6"/><b id="7"><b id="8"/></b></d></c></s><b id="9"/><b id="10"/><e/></r>`
	for xpath, want := range map[string]string{ // as xmllint has them
		"//b[1]/@id": "1 2 5 6 8 9", "//b[last()]/@id": "3 4 5 7 8 10", "//*[2]/@id": "3 4 7 9", "//b[1][@id>1]/@id": "2 5 6 8 9",
		"//e/preceding-sibling::b/@id": "9 10", "//b[@id=8]/ancestor::b/@id | //b[7]/@id | //s/b/@id": "1 4 7", "(//b)[2]/@id": "2",
	} {
		b.WantText("xml_parser", nativetest.Args("input", doc, "xpath", xpath), strings.ReplaceAll(want, " ", "\n"))
	}
}

func TestXMLOperations(t *testing.T) {
	b := newBench(t)
	op := func(operation, input string) string { return nativetest.Args("input", input, "operation", operation) }
	b.WantText("xml_parser", op("parse", books), `Well-formed: 9 elements, at most 3 levels deep.
/shelf (1)
/shelf/book (2) @id @lang
/shelf/book/title (2) such as "Tides & Ports"
/shelf/book/dc:creator (2) such as "Ann"
/shelf/book/price (2) such as "8.95"`)
	b.WantText("xml_parser", op("validate", books), "Well-formed: 9 elements below <shelf>.")
	b.WantText("xml_parser", op("format", `<a b="1&#10;&quot;"><c>x <b>y</b></c><d/><?go now?><e><f/></e></a><!--end-->`), `<?xml version="1.0" encoding="UTF-8"?>
<a b="1&#10;&quot;">
  <c>x <b>y</b></c>
  <d/>
  <?go now?>
  <e>
    <f/>
  </e>
</a>
<!--end-->`)
	b.WantText("xml_parser", op("to_json", `<a n="1"><b>x</b><c/><b k="&quot;"> y </b>tail<d><e>1</e></d></a>`), `{
  "a": {
    "@n": "1",
    "b": [
      "x",
      {
        "@k": "\"",
        "#text": "y"
      }
    ],
    "c": "",
    "d": {
      "e": "1"
    },
    "#text": "tail"
  }
}`)
	b.WantText("xml_parser", op("parse", `<x:a><y:b x:k="1"/></x:a>`), "Well-formed: 2 elements, at most 2 levels deep.\n/x:a (1)\n/x:a/y:b (1) @x:k\n[declared nowhere: the prefix x, y]")
	long := "<a>" + strings.Repeat("<b>text</b>", 2000) + "</a>"
	b.WantParts("xml_parser", op("to_json", long), "[characters 1 to 8000 of ", "go on with offset 8001]")
	b.WantParts("xml_parser", nativetest.Args("input", long, "xpath", "//b", "offset", 23_990), "[characters 23990 to 23999 of 23999]")
}

func TestXMLOfOtherPrograms(t *testing.T) {
	b := newBench(t)
	putFiles(t, b, "xml")
	for _, name := range []string{"python-atom-latin1.xml", "python-atom-utf16.xml"} {
		b.WantText("xml_parser", nativetest.Args("path", "/in/"+name, "xpath", "//entry[title='Flut']/dc:creator/text()"), "Jörg")
		b.WantText("xml_parser", nativetest.Args("path", "/in/"+name, "xpath", "/feed/title/text()"), "Häfen & Meer")
	}
	got, _ := b.Call("xml_parser", `{"path":"/in/xmllint-format.xml","operation":"format"}`)
	if want := strings.TrimSpace(b.Get("in/xmllint-format.xml")); got != want {
		t.Errorf("got %s, and xmllint makes %s", got, want)
	}
	b.Put("in/w.xml", "<?xml version='1.0' encoding='windows-1251'?><a>\xec\xee\xf0\xe5</a>")
	b.WantText("xml_parser", `{"path":"/in/w.xml","xpath":"string(/a)"}`, "море")
	b.Put("in/m.xml", "\xef\xbb\xbf<a>ü</a>")
	b.WantText("xml_parser", `{"path":"/in/m.xml","xpath":"string(/a)"}`, "ü")
	b.Put("in/u.xml", "<?xml version=\"1.0\" encoding=\"UTF-16\"?><a>x</a>") // what programs write that convert a string
	b.WantText("xml_parser", `{"path":"/in/u.xml","xpath":"string(/a)"}`, "x")
	b.Put("in/bad.xml", "<a>\xfc</a>")
	b.WantFailure("xml_parser", `{"path":"/in/bad.xml"}`, "/in/bad.xml can't be read")
	b.Put("in/none.xml", "<?xml version='1.0' encoding='klingon'?><a/>")
	b.WantFailure("xml_parser", `{"path":"/in/none.xml"}`, "klingon")
}

func TestXMLRefuses(t *testing.T) {
	b := newBench(t)
	b.Put("in/secret.txt", "hunter2")
	laughs := `<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol "lol">`
	for i := range 10 {
		laughs += fmt.Sprintf(`<!ENTITY lol%d "%s">`, i, strings.Repeat(fmt.Sprintf("&lol%d;", i-1), 10))
	}
	for input, want := range map[string]string{
		laughs + `]><lolz>&lol9;</lolz>`:                                          "declares entities",
		`<!DOCTYPE a [<!ENTITY x SYSTEM "file:///in/secret.txt">]><a>&x;</a>`:     "declares entities",
		`<!DOCTYPE a [<!ENTITY % p SYSTEM "http://localhost/x.dtd"> %p;]><a/>`:    "declares entities",
		`<!DOCTYPE a [<!ELEMENT a ANY><!-- c --><!ENTITY x "y">]><a/>`:            "declares entities",
		`<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0//EN" "x.dtd"><h>&auml;</h>`: "it looks like HTML",
		`<!doctype html><html><br><p>x</html>`:                                    "it looks like HTML",
		`<html><body><img src=x></body></html>`:                                   "it looks like HTML",
		`{"a": 1}`:                                                                "json_tool",
		"<a>\n  <b></c>\n</a>":                                                    "line 2, column 10: <b> is ended by </c>",
		"<a><b></a>":                                                              "<b> is ended by </a>",
		"<a>\n<b>":                                                                "line 2, column 4: <b> is not ended",
		"</a>":                                                                    "ends nothing",
		"<a/><b/>":                                                                "a second element <b>",
		"<a/>text":                                                                "text outside",
		"<a k='1' k='2'/>":                                                        "the attribute k twice",
		"<a k=1/>":                                                                "line 1",
		"<a>&nope;</a>":                                                           "invalid character entity &nope;; XML itself knows",
		"<a>\x01</a>":                                                             "illegal character",
		"<!-- x -->":                                                              "no element",
		"  ":                                                                      "is empty",
		strings.Repeat("<a>", 300) + strings.Repeat("</a>", 300): "more than 256 levels",
		"<a>" + strings.Repeat("<b/>", 500_001) + "</a>":         "more than 500000",
		"<a " + strings.Repeat("x", 5<<20) + "='1'/>":            "at most 4194304",
	} {
		b.WantFailure("xml_parser", nativetest.Args("input", input), want)
	}
	var attrs strings.Builder
	for i := range 1001 {
		fmt.Fprintf(&attrs, " a%d='x'", i)
	}
	b.WantFailure("xml_parser", nativetest.Args("input", "<a"+attrs.String()+"/>"), "more than 1000 attributes")
	// An inclusion is an element like any other.
	b.WantText("xml_parser", nativetest.Args("input", `<a xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="/in/secret.txt" parse="text"/></a>`, "xpath", "string(/a)"), "[an empty text]")
	b.WantFailure("xml_parser", `{}`, `either as "input" or as "path"`)
	b.WantFailure("xml_parser", `{"input":"<a/>","operation":"query"}`, `needs the argument "xpath"`)
	b.WantFailure("xml_parser", `{"input":"<a/>","operation":"parse","xpath":"/a"}`, "is for the operation query")
}

// TestXMLIsBounded holds documents and queries that take for ever where nothing stops
// them. Nothing is left running.
func TestXMLIsBounded(t *testing.T) {
	b := bounds(t)
	wide := "<a>" + strings.Repeat("<b>1</b>", 100_000) + "</a>"
	deep := strings.Repeat("<a>", 250) + strings.Repeat("<b/>", 2000) + strings.Repeat("</a>", 250)
	before := runtime.NumGoroutine()
	for _, tt := range [][2]string{
		{wide, "//b[count(//b[count(//b)>1])>1]"},
		{deep, strings.Repeat("//*/ancestor::*", 20) + "[//*]"},
		{"<a>" + strings.Repeat("x", 4_000_000) + "</a>", "concat(" + strings.Repeat("/a,", 300) + "/a)"},
	} {
		b.WantFailure("xml_parser", nativetest.Args("input", tt[0], "xpath", tt[1]), "make it more specific")
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, %d before", n, before)
	}
	// Many sections of one text, and many namespaces, are not copied over and over.
	b.WantParts("xml_parser", nativetest.Args("input", "<a>"+strings.Repeat("<![CDATA[x]]>", 300_000)+"</a>", "xpath", "string-length(/a)"), "300000")
	var spaces strings.Builder
	for i := range 900 {
		fmt.Fprintf(&spaces, " xmlns:p%d='u'", i)
	}
	b.WantFailure("xml_parser", nativetest.Args("input", "<a"+spaces.String()+">"+strings.Repeat("<b xmlns='v'/>", 100_000)+"</a>"), "more than 500000")
	b.WantParts("xml_parser", nativetest.Args("input", deep, "operation", "format"), "go on with offset")
}

func FuzzXML(f *testing.F) {
	b := newBench(f)
	tool, _ := b.Reg.Lookup("xml_parser")
	for _, s := range [][3]string{
		{books, "query", "//book[@lang='de']/title"}, {books, "to_json", ""}, {`<a xmlns="u"><b x:y="1">&#65;</b></a>`, "format", ""},
		{books, "query", "sum(//price) div count(//*)"}, {books, "parse", ""}, {books, "query", "//book[position()<2]/following-sibling::*"},
	} {
		f.Add(s[0], s[1], s[2])
	}
	f.Fuzz(func(t *testing.T, doc, operation, xpath string) {
		res, err := tool.Call(t.Context(), call(nativetest.Args("input", doc, "operation", operation, "xpath", xpath)))
		holdsBound(t, res, err)
	})
}
