package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"crewhost/crew"
	"crewhost/runner"
	"crewhost/runner/process"
)

// junitSuites is a JUnit document; schema/junit.xsd is its schema. CI servers show
// its cases as tests.
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr,omitempty"` // seconds; none where it would differ from run to run for nothing
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	File    string        `xml:"file,attr,omitempty"`
	Line    int           `xml:"line,attr,omitempty"`
	Time    string        `xml:"time,attr,omitempty"`
	Skipped *junitOutcome `xml:"skipped"`
	Failure *junitOutcome `xml:"failure"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitOutcome struct {
	Message string `xml:"message,attr,omitempty"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// The rooms that a report is about, each a suite.
const (
	roomSettings = "settings"
	roomServers  = "servers"
	roomCrew     = "crew"
	roomPolicy   = "policy"
	roomLock     = "lock"
)

// roomOf is the room that an issue belongs to.
func (r report) roomOf(i crew.Issue) string {
	switch {
	case i.Code == codeRequiredServer:
		return roomServers
	case strings.HasPrefix(i.Code, "lock"):
		return roomLock
	case i.Code == runner.CodeBadRule:
		return roomPolicy
	case i.Code == runner.CodeBadMount, i.File != "" && r.settings != nil && i.File == r.settings.Path:
		return roomSettings
	case r.crew == nil && r.settings == nil: // they were not read
		return roomSettings
	}
	return roomCrew
}

// junit is a report as tests: one of each issue, which failed, and of each room and
// each server that there is nothing to say against, which passed.
func (o *output) junit(r report) junitSuites {
	root := sourceRoot(r.path)
	o = o.below(root)
	suites := map[string]*junitSuite{}
	order := []string{roomSettings, roomServers, roomCrew, roomPolicy, roomLock}
	for _, room := range order {
		suites[room] = &junitSuite{Name: room}
	}
	add := func(room string, c junitCase) {
		c.Class = "crewhost." + room
		suites[room].Cases = append(suites[room].Cases, c)
	}
	failed := map[string]bool{}
	for _, i := range r.verdict.Issues {
		room := r.roomOf(i)
		if room == roomServers && len(r.verdict.Servers) > 0 {
			continue // its own case says it
		}
		failed[room] = true
		c := junitCase{Name: o.mask(i.Code), Failure: &junitOutcome{Message: o.mask(oneLine(i.Message)), Type: i.Code, Text: o.mask(oneLine(relativeIssue(root, i).Error()))}}
		if pos := inFile(i.Pos); pos.File != "" {
			c.File, c.Line = relative(root, pos.File), i.Line
			c.Name += " at " + place(c.File, i.Line, i.Column)
		} else {
			c.Name += ": " + o.mask(oneLine(i.Message))
		}
		add(room, c)
	}
	warnings := func(room string) string {
		var lines []string
		for _, w := range r.verdict.Warnings {
			if r.roomOf(w) == room {
				lines = append(lines, "WARNING: "+o.mask(oneLine(relativeIssue(root, w).Error())))
			}
		}
		return strings.Join(lines, "\n")
	}
	if s := r.settings; s != nil && !failed[roomSettings] {
		name, out := "defaults", warnings(roomSettings)
		if s.Path != "" {
			name = relative(root, s.Path)
		}
		for _, w := range s.Warnings {
			out = strings.TrimPrefix(out+"\nWARNING: "+o.mask(oneLine(w)), "\n")
		}
		add(roomSettings, junitCase{Name: name, Out: out})
	}
	for _, s := range r.verdict.Servers {
		c := junitCase{Name: s.Name}
		if pos := inFile(r.declared(s.Name)); pos.File != "" {
			c.File, c.Line = relative(root, pos.File), pos.Line
		}
		var lines []string
		for _, skip := range s.Skipped {
			lines = append(lines, "WARNING: "+o.mask(oneLine(skip.String())))
		}
		for _, w := range s.Warnings {
			lines = append(lines, "WARNING: "+o.mask(oneLine(w)))
		}
		switch {
		case s.Err != nil && s.Required:
			c.Failure = &junitOutcome{Message: o.reason(s.Err), Type: codeRequiredServer, Text: o.reason(s.Err)}
		case s.Err != nil:
			c.Skipped = &junitOutcome{Message: "not connected, and not required: " + o.reason(s.Err)}
		default:
			lines = append([]string{count(len(s.Tools), "tool") + ", protocol " + s.Protocol}, lines...)
		}
		c.Out = strings.Join(lines, "\n")
		add(roomServers, c)
	}
	if r.crew != nil && !failed[roomCrew] {
		add(roomCrew, junitCase{Name: relative(root, r.path), Out: warnings(roomCrew)})
	}
	if p := r.policy; p != nil && !failed[roomPolicy] {
		lines := []string{fmt.Sprintf("default %s; %d allow, %d ask, %d deny; headless %s; approve %s", p.Default, p.Allow, p.Ask, p.Deny, p.Headless, r.approve)}
		for _, idle := range p.Idle {
			lines = append(lines, "WARNING: "+o.mask(oneLine(idle)))
		}
		for _, h := range p.Held {
			lines = append(lines, fmt.Sprintf("agent %s: %s: %s", h.Agent, h.Tool, o.mask(oneLine(h.Decision.Reason))))
		}
		add(roomPolicy, junitCase{Name: "rules", Out: strings.Join(lines, "\n")})
	}
	if r.lock != "" && !failed[roomLock] {
		add(roomLock, junitCase{Name: relative(root, r.lock), Out: warnings(roomLock)})
	}
	doc := junitSuites{Name: "crewhost run --validate"}
	for _, room := range order {
		if len(suites[room].Cases) > 0 {
			doc.Suites = append(doc.Suites, *suites[room])
		}
	}
	return doc.counted()
}

// junitOfRun is a run as tests, one of each task.
func (o *output) junitOfRun(crewName string, result *runner.Output, failure error) junitSuites {
	suite := junitSuite{Name: crewName, Time: seconds(result.Took)}
	failed := false
	for _, t := range result.Tasks {
		c := junitCase{Class: "crewhost.run", Name: t.Task, Time: seconds(t.Took)}
		why := t.Why
		if t.Err != nil {
			why = o.reason(t.Err)
		}
		switch t.State {
		case process.Completed:
			c.Out = o.mask(t.Text)
		case process.Failed:
			failed = true
			c.Failure = &junitOutcome{Message: o.mask(oneLine(why)), Type: string(t.State), Text: o.mask(t.Text)}
		default:
			c.Skipped = &junitOutcome{Message: strings.TrimSuffix(string(t.State)+": "+o.mask(oneLine(why)), ": ")}
		}
		suite.Cases = append(suite.Cases, c)
	}
	if failure != nil && !failed { // of the run itself: it was stopped, or a limit passed
		suite.Cases = append(suite.Cases, junitCase{Class: "crewhost.run", Name: "the run", Failure: &junitOutcome{Message: o.reason(failure), Type: "run", Text: o.reason(failure)}})
	}
	return junitSuites{Name: "crewhost run", Suites: []junitSuite{suite}}.counted()
}

// junitOfFindings is a diagnosis as tests. What is only doubtful passes, and says so.
func junitOfFindings(findings []finding) junitSuites {
	suite := junitSuite{Name: "doctor"}
	for _, f := range findings {
		c := junitCase{Class: "crewhost.doctor", Name: f.Check}
		switch f.Status {
		case broken:
			c.Failure = &junitOutcome{Message: f.Detail, Type: f.Status, Text: f.Detail}
		case doubt:
			c.Out = "WARNING: " + f.Detail
		default:
			c.Out = f.Detail
		}
		suite.Cases = append(suite.Cases, c)
	}
	return junitSuites{Name: "crewhost doctor", Suites: []junitSuite{suite}}.counted()
}

// counted fills in the sums.
func (d junitSuites) counted() junitSuites {
	for i := range d.Suites {
		s := &d.Suites[i]
		for _, c := range s.Cases {
			s.Tests++
			switch {
			case c.Failure != nil:
				s.Failures++
			case c.Skipped != nil:
				s.Skipped++
			}
		}
		d.Tests, d.Failures, d.Skipped = d.Tests+s.Tests, d.Failures+s.Failures, d.Skipped+s.Skipped
	}
	return d
}

// write writes the document. Characters that XML can't hold become U+FFFD.
func (d junitSuites) write(w io.Writer) error {
	text, err := xml.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	if _, err := fmt.Fprintf(w, "%s%s\n", xml.Header, legal(string(text))); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// legal takes out what is no text: the encoder writes U+FFFD for what XML can't hold
// and leaves control characters that only draw on terminals.
func legal(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 0x7f && r <= 0x9f {
			return utf8.RuneError
		}
		return r
	}, s)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
