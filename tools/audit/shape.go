package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

const (
	maxShape   = 1024 // bytes
	maxMembers = 32   // of one object
	maxLevels  = 5
	maxMember  = 64 // bytes of a name
)

// Shape describes JSON without its values: the names of members, in their order, and
// the kinds and sizes of what they hold. Texts are measured in bytes, and of a list
// the first item is shown:
//
//	{path: string(12), edits: list(3) of {old: string(5), new: string(9)}, dry: bool}
//
// Names that are no plain words are quoted, and all go through mask, if there is one,
// before anything is cut: a model may write anything where a name should be. A shape has
// at most about a kilobyte: what is deep, or much, is left out. What is no JSON is
// "invalid".
func Shape(data json.RawMessage, mask func(string) string) string {
	if !json.Valid(data) {
		return "invalid"
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	s := shaper{dec: dec, mask: mask}
	s.value(0, true)
	text := string(s.out)
	if s.full {
		text += "…"
	}
	return text
}

// shaper writes the shape of what its decoder reads.
type shaper struct {
	dec  *json.Decoder
	mask func(string) string
	out  []byte
	full bool
}

func (s *shaper) write(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !s.full && len(s.out)+len(text) <= maxShape {
		s.out = append(s.out, text...)
	} else {
		s.full = true
	}
}

// value reads the next value, and writes its shape if it is to be shown.
func (s *shaper) value(level int, shown bool) {
	token, err := s.dec.Token()
	if err != nil {
		return // it was valid before
	}
	var kind string
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			s.object(level, shown)
		} else {
			s.list(level, shown)
		}
		return
	case string:
		kind = fmt.Sprintf("string(%d)", len(t))
	case json.Number:
		kind = "number"
	case bool:
		kind = "bool"
	default:
		kind = "null"
	}
	if shown {
		s.write("%s", kind)
	}
}

func (s *shaper) object(level int, shown bool) {
	deep := level >= maxLevels
	if shown {
		s.write("{")
	}
	n := 0
	for ; s.dec.More(); n++ {
		name, err := s.dec.Token()
		if err != nil {
			return
		}
		show := shown && !deep && n < maxMembers && !s.full
		if show {
			if n > 0 {
				s.write(", ")
			}
			s.write("%s: ", s.member(fmt.Sprint(name)))
		}
		s.value(level+1, show)
	}
	_, _ = s.dec.Token()
	switch {
	case shown && deep && n > 0:
		s.write("%d members", n)
	case shown && n > maxMembers:
		s.write(", %d more", n-maxMembers)
	}
	if shown {
		s.write("}")
	}
}

// list shows the first item, whose shape stands after the number of all.
func (s *shaper) list(level int, shown bool) {
	deep := level >= maxLevels
	outer := s.out
	s.out = nil
	full := s.full
	n := 0
	for ; s.dec.More(); n++ {
		s.value(level+1, shown && !deep && n == 0)
	}
	_, _ = s.dec.Token()
	first := string(s.out)
	s.out = outer
	cut := s.full && !full
	s.full = full
	if !shown {
		return
	}
	s.write("list(%d)", n)
	if first != "" {
		s.write(" of %s", first)
	}
	s.full = s.full || cut
}

// member is a name as it is shown.
func (s *shaper) member(name string) string {
	if s.mask != nil {
		name = s.mask(name)
	}
	word := name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && r != '-' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	switch {
	case len(name) > maxMember:
		return strconv.Quote(name[:maxMember]) + fmt.Sprintf("…(%d)", len(name))
	case word:
		return name
	default:
		return strconv.Quote(name)
	}
}
