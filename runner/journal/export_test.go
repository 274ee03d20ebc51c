package journal

// Line is the first line of a journal, or the one of that number after none.
func Line(b []byte, seq int64, record string) []byte {
	return appendLine(b, seq, sum{}.next(seq, []byte(record)), []byte(record))
}
