package documents

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// numberKind is what a number of a cell stands for, by its format.
type numberKind uint8

const (
	plainNumber numberKind = iota
	dateNumber             // days since the epoch
	clockNumber            // a part of a day
	bothNumber             // a date and a time
	spanNumber             // hours beyond a day
)

// builtinKinds are the formats that files name by number only. Those of East Asia
// differ by language, and are dates all the same.
func builtinKind(id int) numberKind {
	switch {
	case id >= 14 && id <= 17, id >= 27 && id <= 31, id == 36, id >= 50 && id <= 54, id >= 57 && id <= 58:
		return dateNumber
	case id >= 18 && id <= 21, id >= 32 && id <= 35, id == 45, id == 47, id >= 55 && id <= 56:
		return clockNumber
	case id == 22:
		return bothNumber
	case id == 46:
		return spanNumber
	}
	return plainNumber
}

// formatKind tells it from a format such as dd.mm.yyyy or [h]:mm.
func formatKind(code string) numberKind {
	date, clock := false, false
	code, _, _ = strings.Cut(code, ";") // for positive numbers
	for i := 0; i < len(code); i++ {
		switch c := code[i] | 0x20; c {
		case '"' | 0x20:
			if end := strings.IndexByte(code[i+1:], '"'); end >= 0 {
				i += end + 1
			}
		case '\\' | 0x20, '_' | 0x20, '*' | 0x20:
			if code[i] == '\\' || code[i] == '_' || code[i] == '*' {
				i++
			}
		case '[' | 0x20:
			end := strings.IndexByte(code[i:], ']')
			if end < 0 {
				continue
			}
			switch strings.ToLower(strings.Trim(code[i+1:i+end], "hmsHMS")) {
			case "":
				if end > 1 {
					return spanNumber
				}
			}
			i += end // a colour, a condition, a language
		case 'y', 'd':
			date = true
		case 'h', 's':
			clock = true
		case 'm':
			// A month, unless hours or seconds are beside it.
			if rest := strings.ToLower(code[i:]); !clock && !strings.HasPrefix(strings.TrimLeft(rest, "m"), ":s") {
				date = true
			}
		case 'g', 'e':
			if strings.HasPrefix(strings.ToLower(code[i:]), "general") {
				return plainNumber
			}
		case '0' | 0x20, '#' | 0x20, '?' | 0x20:
			if !date && !clock && (code[i] == '0' || code[i] == '#' || code[i] == '?') {
				return plainNumber
			}
		}
	}
	switch {
	case date && clock:
		return bothNumber
	case date:
		return dateNumber
	case clock:
		return clockNumber
	}
	return plainNumber
}

// showNumber is a number as text: dates and times as ISO 8601 has them, others with
// the fifteen digits that spreadsheets work with.
func showNumber(raw string, kind numberKind, epoch1904 bool) string {
	raw = strings.TrimSpace(raw)
	f, err := strconv.ParseFloat(raw, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return raw
	}
	if kind != plainNumber && f >= 0 && f < 2_958_466 { // to the end of the year 9999
		return showTime(f, kind, epoch1904)
	}
	if strings.Trim(raw, "0123456789") == "" || raw[0] == '-' && strings.Trim(raw[1:], "0123456789") == "" {
		return raw // every digit of a whole number
	}
	if rounded, err := strconv.ParseFloat(strconv.FormatFloat(f, 'g', 15, 64), 64); err == nil {
		f = rounded
	}
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

func showTime(days float64, kind numberKind, epoch1904 bool) string {
	const day = 86_400_000 // milliseconds
	ms := int64(math.Round(days * day))
	clock := time.UnixMilli(ms % day).UTC().Format("15:04:05.999")
	switch {
	case kind == spanNumber:
		s := ms / 1000
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	case kind == clockNumber && ms < day:
		return clock
	}
	n := ms / day
	var date string
	switch {
	case epoch1904:
		date = time.Date(1904, 1, 1+int(n), 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
	case n == 0 && kind != dateNumber:
		return clock
	case n == 60:
		date = "1900-02-29" // a day that spreadsheets have, and the calendar has not
	case n < 60:
		date = time.Date(1899, 12, 31+int(n), 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
	default:
		date = time.Date(1899, 12, 30+int(n), 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
	}
	if kind == dateNumber && ms%day == 0 {
		return date
	}
	return date + "T" + clock
}
