package documents_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crewhost/tools/native"
	"crewhost/tools/native/nativetest"
)

func TestEmailOfOtherPrograms(t *testing.T) {
	b := newBench(t)
	putFiles(t, b, "email")
	b.WantText("email_parser", `{"path":"/in/python-modern.eml"}`, `From: Jörg Müller <joerg@example.org>
To: Ann <ann@example.com>, Bob <bob@example.com>
Cc: crew@example.com
Subject: Angebot für den Hafen – Nr. 7
Date: Mon, 30 Nov 2026 12:00:00 +0100
Message-ID: <1@example.org>

Guten Tag,

anbei das Angebot über 1.200 €.

Attachments:
1. Preisübersicht 2026.csv (text/csv, 8 bytes)
2. ../../etc/passwd (application/octet-stream, 256 bytes)
3. (no name) (message/rfc822, 146 bytes)`)
	b.WantText("email_parser", `{"path":"/in/python-legacy-html.eml"}`, `From: Łukasz <l@example.pl>
To: a@example.com
Subject: `+strings.TrimSpace(strings.Repeat("Zażółć gęślą jaźń ", 5))+`

Cześć

- raz
- dwa

a 1

[logo]

Attachments:
1. łódź.png (image/png, 9 bytes)`)
	b.WantText("email_parser", `{"path":"/in/python.mbox","message":2}`, "From: p2@example.org\nSubject: number 2\n\nfirst line\n\nFrom here on it is text 2\n[message 2 of a mailbox; the next is message 3]")
	b.WantParts("email_parser", `{"path":"/in/python.mbox","message":3}`, "text 3\n[message 3, the last of a mailbox]")
	b.WantFailure("email_parser", `{"path":"/in/python.mbox","message":4}`, "has 3 messages; there is no message 4")
	b.WantParts("email_parser", `{"path":"/in/git-format-patch.mbox"}`, "From: Zoë Ångström <z@example.org>\n", "Subject: [PATCH 1/2] first: ä\n", "A longer text.\n", "+++ b/a\n", "the next is message 2]")
	b.WantParts("email_parser", `{"path":"/in/git-attach.mbox"}`, "Subject: [PATCH] second", "Attachments:\n1. 0001-second.patch (text/x-patch,")
	b.WantParts("email_parser", `{"path":"/in/python-modern.eml","all_headers":true}`, "MIME-Version: 1.0\n")
}

func TestEmailSavesAttachments(t *testing.T) {
	b := newBench(t)
	putFiles(t, b, "email")
	b.Put("out/mail/passwd", "mine")
	args := `{"path":"/in/python-modern.eml","save_attachments_to":"/out/mail"}`
	b.WantParts("email_parser", args, "Preisübersicht 2026.csv (text/csv, 8 bytes), saved as /out/mail/Preisübersicht 2026.csv\n",
		"(application/octet-stream, 256 bytes), saved as /out/mail/passwd-2\n", "saved as /out/mail/attachment.eml")
	if got := b.Get("out/mail/Preisübersicht 2026.csv"); got != "a;b\n1;2\n" {
		t.Errorf("got %q", got)
	}
	if b.Get("out/mail/passwd") != "mine" || len(b.Get("out/mail/passwd-2")) != 256 {
		t.Error("a file was overwritten, or not written")
	}
	b.WantParts("email_parser", `{"path":"/out/mail/attachment.eml"}`, "Subject: inner\n\ninner text")
	b.WantParts("email_parser", args, "saved as /out/mail/passwd-3", "saved as /out/mail/attachment-2.eml")
	b.WantFailure("email_parser", `{"path":"/in/python-modern.eml","save_attachments_to":"/in/x"}`, "/in/x")
	for name, want := range map[string]string{
		"..": "attachment", "": "attachment", "a/b\\c.txt": "c.txt", ".bashrc": "bashrc", "a\x00b\nc.txt": "ab c.txt", "nul.txt": "_nul.txt", "COM1": "_COM1",
		"\u202egpj.exe": "gpj.exe", "$(rm -rf ~).sh": "_(rm -rf _).sh", strings.Repeat("é", 200) + ".pdf": strings.Repeat("é", 58) + ".pdf", "a:b|c?.txt": "a_b_c_.txt", "-rf": "rf",
	} {
		m := "Subject: x\nContent-Type: application/x\nContent-Disposition: attachment; filename*=utf-8''" + percent(name) + "\n\nx"
		b.Put("in/m.eml", m)
		_ = os.RemoveAll(filepath.Join(b.Root, "out/s"))
		b.WantParts("email_parser", `{"path":"/in/m.eml","save_attachments_to":"/out/s"}`, "saved as /out/s/"+want)
		if entries, err := os.ReadDir(filepath.Join(b.Root, "out/s")); err != nil || len(entries) != 1 || entries[0].Name() != want {
			t.Errorf("%q: got %v, want %q", name, entries, want)
		}
	}
	tool, _ := b.Reg.Lookup("email_parser")
	does := tool.(native.Tool).Does
	if does([]byte(args)) != native.Once || does([]byte(`{"path":"x"}`)) != native.ReadOnly || does([]byte(`{"path":"x","save_attachments_to":null}`)) != native.ReadOnly {
		t.Error("the effects are wrong")
	}
}

func percent(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

func TestEmailThatIsDamaged(t *testing.T) {
	b := newBench(t)
	multi := func(parts ...string) string {
		return "Subject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=bb\n\n--bb\n" + strings.Join(parts, "\n--bb\n") + "\n"
	}
	for name, tt := range map[string]struct{ message, want string }{
		"no type":          {"Subject: x\n\nhello", "Subject: x\n\nhello"},
		"bare CR LF":       {"Subject: x\r\n\r\nhel\r\nlo\r\n", "Subject: x\n\nhel\nlo"},
		"no text":          {"Subject: x\n\n", "Subject: x\n\n[the message has no text]"},
		"rubbish fields":   {">From somebody\nthis is no field\nSubject: x\n\tfolded\n\nhello", "Subject: x folded\n\nhello"},
		"raw bytes":        {"Subject: M\xfcller\nContent-Type: text/plain; charset=iso-8859-1\n\nM\xfcller", "Subject: Müller\n\nMüller"},
		"wrong charset":    {"Subject: x\nContent-Type: text/plain; charset=utf-8\n\nM\xfcller", "Subject: x\n\nMüller\n[a text is not utf-8, as it says; decoded as windows-1252, which is a guess, since it is not UTF-8; name its encoding if characters are wrong]"},
		"unknown charset":  {"Subject: x\nContent-Type: text/plain; charset=klingon\n\nhello", "Subject: x\n\nhello\n[a text names the encoding \"klingon\", which is not known; its bytes told another]"},
		"broken word":      {"Subject: =?utf-8?q?J=C3=B6rg?= =?utf-8?b?!!!?= =?klingon?q?x?=\n\nx", "Subject: Jörg =?utf-8?b?!!!?= =?klingon?q?x?=\n"},
		"base64 garbage":   {"Subject: x\nContent-Transfer-Encoding: base64\n\naGVs\n*?*bG8g\n--=d29ybGQ=\nfooter of a list", "Subject: x\n\nhello world"},
		"cut base64":       {"Subject: x\nContent-Transfer-Encoding: base64\n\naGVsbG8gd29ybG", "Subject: x\n\nhello wor\n[a text is damaged: unexpected EOF]"},
		"bad quoted":       {"Subject: x\nContent-Transfer-Encoding: quoted-printable\n\na=C3=A4b =\nc=ZZ d", "Subject: x\n\naäb c=ZZ d"},
		"no last boundary": {multi("Content-Type: text/plain\n\none", "Content-Type: text/plain\n\ntwo"), "Subject: x\n\none\n\ntwo"},
		"no boundary":      {"Subject: x\nContent-Type: multipart/mixed\n\nhello", ""},
		"wrong boundary":   {"Subject: x\nContent-Type: multipart/mixed; boundary=zz\n\n--bb\n\nhello\n--bb--\n", "[the message has no text]"},
		"no header":        {"hello\nworld\n", ""},
		"escape codes":     {"Subject: a\x1b[31mb\n\nhello", "Subject: a[31mb\n\nhello"},
		"plain wins":       {"Subject: x\nContent-Type: multipart/alternative; boundary=bb\n\n--bb\nContent-Type: text/html\n\n<p>html</p>\n--bb\nContent-Type: text/plain\n\nplain\n--bb--\n", "Subject: x\n\nplain"},
		"empty plain":      {"Subject: x\nContent-Type: multipart/alternative; boundary=bb\n\n--bb\nContent-Type: text/plain\n\n  \n--bb\nContent-Type: text/html\n\n<p>a<br>b &amp; <a href=\"https://x.org/y\">c</a></p>\n--bb--\n", "Subject: x\n\na\nb & c (https://x.org/y)"},
	} {
		b.Put("in/m.eml", tt.message)
		got, failed := b.Call("email_parser", `{"path":"/in/m.eml"}`)
		if tt.want == "" {
			if name == "no header" && (!failed || !strings.Contains(got, "it is no message")) || name == "no boundary" && failed {
				t.Errorf("%s: got %q", name, got)
			}
			continue
		}
		if failed || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
	b.Put("in/m.eml", "Subject: x\n\n"+strings.Repeat("word ", 10_000))
	b.WantParts("email_parser", `{"path":"/in/m.eml"}`, "[characters 1 to 8000 of 49999; go on with offset 8001]")
	b.WantParts("email_parser", `{"path":"/in/m.eml","offset":49997}`, "Subject: x\n\nord\n[characters 49997 to 49999 of 49999]")
	b.WantFailure("email_parser", `{"path":"/in/m.eml","offset":50000}`, "49999 characters is all")
}

func TestEmailIsBounded(t *testing.T) {
	b := bounds(t)
	var m bytes.Buffer
	m.WriteString("Subject: x\nContent-Type: multipart/mixed; boundary=bb\n\n")
	for range 10_000 {
		m.WriteString("--bb\nContent-Type: application/x; name=a\n\nx\n")
	}
	b.Put("in/parts.eml", m.String()+"--bb--\n")
	b.WantParts("email_parser", `{"path":"/in/parts.eml"}`, "100. a (application/x, 1 byte)\n[900 more]\n[more than 1000 parts; those behind were not looked at]")

	m.Reset()
	m.WriteString("Subject: x\nContent-Type: multipart/mixed; boundary=b0\n\n")
	for i := range 2000 {
		fmt.Fprintf(&m, "--b%d\nContent-Type: multipart/mixed; boundary=b%d\n\n", i, i+1)
	}
	b.Put("in/deep.eml", m.String()+"--b2000\n\nhello")
	b.WantParts("email_parser", `{"path":"/in/deep.eml"}`, "more than 20 levels deep were not looked at")

	b.Put("in/long.eml", "Subject: x\n\n"+strings.Repeat("y", 5<<20))
	b.WantParts("email_parser", `{"path":"/in/long.eml"}`, "[a text was cut after 2097152 bytes]", "of 2097152; go on")
	b.Put("in/header.eml", strings.Repeat("X-A: y\n", 200_000)+"\nhello")
	b.WantFailure("email_parser", `{"path":"/in/header.eml"}`, "its header does not end")
	b.Put("in/fields.eml", "Subject: "+strings.Repeat("z", 2000)+"\n"+strings.Repeat("To: y\n", 1000)+"\nhello")
	b.WantParts("email_parser", `{"path":"/in/fields.eml"}`, "z[... 1000 more characters]", "[more header fields than 100]\n\nhello")
	b.Put("in/html.eml", "Subject: x\nContent-Type: text/html\n\n"+strings.Repeat("<div><a href='http://x'>", 80_000)+strings.Repeat("</a>", 1000)+"deep")
	b.WantText("email_parser", `{"path":"/in/html.eml"}`, "Subject: x\n\n(http://x)deep")
	big := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("x"), 1<<20))
	b.Put("in/big.eml", "Subject: x\nContent-Type: application/x; name=big\nContent-Transfer-Encoding: base64\n\n"+strings.Repeat(big[:len(big)/4*4-4], 66))
	b.WantParts("email_parser", `{"path":"/in/big.eml"}`, "big (application/x, 6920")
	b.WantFailure("email_parser", `{"path":"/in/big.eml","save_attachments_to":"/out"}`, "/out/big")
	if entries, err := os.ReadDir(filepath.Join(b.Root, "out")); err != nil || len(entries) > 0 {
		t.Errorf("%v %v is left behind", entries, err)
	}
}

func FuzzEmail(f *testing.F) {
	b := newBench(f)
	tool, _ := b.Reg.Lookup("email_parser")
	files, err := filepath.Glob("testdata/email/*.*")
	if err != nil || len(files) == 0 {
		f.Fatal("no files", err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, 1)
	}
	f.Fuzz(func(t *testing.T, data []byte, number int) {
		if err := os.WriteFile(filepath.Join(b.Root, "in/m.eml"), data, 0o644); err != nil {
			t.Fatal(err)
		}
		res, err := tool.Call(t.Context(), call(nativetest.Args("path", "/in/m.eml", "message", number, "all_headers", true)))
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Content) != 1 || len([]rune(res.Content[0].Text)) > native.MaxResult {
			t.Errorf("got %.300v", res)
		}
	})
}
