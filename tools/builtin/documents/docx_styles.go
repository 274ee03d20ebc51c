package documents

import (
	"encoding/xml"
	"strconv"
	"strings"
)

// docxStyle is what a paragraph is by its style.
type docxStyle struct {
	level   int // of a heading, from 1; 0 is none
	list    listPlace
	basedOn string
}

// listPlace is a place in a list: which one and how deep. An empty id is none.
type listPlace struct {
	id    string
	level int
}

// listLevel is how a level of a list is numbered.
type listLevel struct {
	format string // bullet, decimal, lowerLetter ...
	text   string // such as %1.%2.
	start  int
}

const (
	maxDocxStyles = 20_000
	maxListLevels = 9
)

// readStyles learns which styles are headings, and which are lists.
func (d *docxText) readStyles(part string) error {
	id := ""
	return d.each(part, func(_ *xmlReader, token xml.Token) error {
		start, is := token.(xml.StartElement)
		if !is || len(d.styles) > maxDocxStyles {
			return nil
		}
		s := d.styles[id]
		switch value := attribute(start, "val"); start.Name.Local {
		case "style":
			id = attribute(start, "styleId")
			if attribute(start, "type") != "paragraph" {
				id = ""
			}
			s = docxStyle{}
		case "name":
			// These names are English in files of every language.
			name := strings.ToLower(value)
			if n, err := strconv.Atoi(strings.TrimPrefix(name, "heading ")); err == nil && n >= 1 && n <= 9 {
				s.level = n
			} else if name == "title" {
				s.level = 1
			}
		case "basedOn":
			s.basedOn = value
		case "outlineLvl":
			if n, err := strconv.Atoi(value); err == nil && n >= 0 && n < 9 {
				s.level = n + 1
			}
		case "numId":
			s.list.id = value
		case "ilvl":
			s.list.level = listDepth(value)
		default:
			return nil
		}
		if id != "" {
			d.styles[id] = s
		}
		return nil
	})
}

func listDepth(value string) int {
	n, _ := strconv.Atoi(value)
	return min(max(n, 0), maxListLevels-1)
}

// style returns a style with what it has from those that it is based on.
func (d *docxText) style(id string) docxStyle {
	found := d.styles[id]
	for next, left := found.basedOn, 20; next != "" && left > 0; left-- {
		base := d.styles[next]
		if found.level == 0 {
			found.level = base.level
		}
		if found.list.id == "" {
			found.list = base.list
		}
		next = base.basedOn
	}
	return found
}

// readLists learns how lists are numbered.
func (d *docxText) readLists(part string) error {
	abstract := map[string][maxListLevels]listLevel{}
	id, num, level := "", "", 0
	return d.each(part, func(_ *xmlReader, token xml.Token) error {
		start, is := token.(xml.StartElement)
		if !is || len(abstract)+len(d.lists) > maxDocxStyles {
			return nil
		}
		levels := abstract[id]
		switch value := attribute(start, "val"); start.Name.Local {
		case "abstractNum":
			id, num = attribute(start, "abstractNumId"), ""
			abstract[id] = [maxListLevels]listLevel{}
			return nil
		case "num":
			num = attribute(start, "numId")
			return nil
		case "lvlOverride":
			level = listDepth(attribute(start, "ilvl"))
			return nil
		case "startOverride":
			if n, err := strconv.Atoi(value); err == nil && n >= 0 && n < 1_000_000 && num != "" {
				levels := d.lists[num]
				levels[level].start = n
				d.lists[num] = levels
			}
			return nil
		case "abstractNumId":
			if num != "" {
				d.lists[num] = abstract[value]
			}
			return nil
		case "lvl":
			level = listDepth(attribute(start, "ilvl"))
			levels[level].start = 1
		case "start":
			if n, err := strconv.Atoi(value); err == nil && n >= 0 && n < 1_000_000 {
				levels[level].start = n
			}
		case "numFmt":
			levels[level].format = value
		case "lvlText":
			levels[level].text = value
		}
		if num == "" { // a num that looks other than its list is of no use here
			abstract[id] = levels
		}
		return nil
	})
}

// label is what stands before a paragraph of a list: a dash, or its number.
func (d *docxText) label(at listPlace) string {
	levels, known := d.lists[at.id]
	level := levels[at.level]
	if !known || level.format == "bullet" || level.format == "" || level.format == "none" {
		return "-"
	}
	counts := d.counts[at.id]
	if counts == nil {
		if len(d.counts) > maxDocxStyles {
			return "-"
		}
		counts = new([maxListLevels]int)
		for i := range counts {
			counts[i] = levels[i].start - 1
		}
		d.counts[at.id] = counts
	}
	counts[at.level]++
	for i := at.level + 1; i < maxListLevels; i++ {
		counts[i] = levels[i].start - 1
	}
	text := level.text
	for i := range at.level + 1 {
		n := counts[i]
		if i < at.level {
			n = max(n, levels[i].start) // a level above that had no paragraph yet
		}
		text = strings.ReplaceAll(text, "%"+strconv.Itoa(i+1), numeral(n, levels[i].format))
	}
	if len(text) > 40 {
		return "-"
	}
	return text
}

// numeral writes a number as a list does.
func numeral(n int, format string) string {
	text := ""
	switch format {
	case "lowerLetter", "upperLetter":
		if n >= 1 && n <= 26*20 {
			text = strings.Repeat(string(rune('a'+(n-1)%26)), (n-1)/26+1)
		}
	case "lowerRoman", "upperRoman":
		if n >= 1 && n < 4000 {
			text = roman(n)
		}
	}
	switch {
	case text == "":
		return strconv.Itoa(n)
	case strings.HasPrefix(format, "upper"):
		return strings.ToUpper(text)
	}
	return text
}

func roman(n int) string {
	var b strings.Builder
	for _, r := range []struct {
		value int
		text  string
	}{{1000, "m"}, {900, "cm"}, {500, "d"}, {400, "cd"}, {100, "c"}, {90, "xc"}, {50, "l"}, {40, "xl"}, {10, "x"}, {9, "ix"}, {5, "v"}, {4, "iv"}, {1, "i"}} {
		for ; n >= r.value; n -= r.value {
			b.WriteString(r.text)
		}
	}
	return b.String()
}
