package csvfile

import (
	"iter"
	"strings"
)

// Guard returns a cell that no spreadsheet takes for a formula (OWASP, "CSV Injection"): text that begins like a
// formula gets an apostrophe in front, also behind a character at which a spreadsheet may split the line, in spite of
// the commas. So does text that looks guarded already, so that Unguard restores every cell.
func Guard(cell string) string {
	var guarded strings.Builder
	written := 0
	for start := range cellStarts(cell) {
		if formula(cell[start:]) {
			guarded.WriteString(cell[written:start] + "'")
			written = start
		}
	}
	return guarded.String() + cell[written:]
}

// Unguard undoes Guard.
func Unguard(cell string) string {
	var plain strings.Builder
	written := 0
	for start := range cellStarts(cell) {
		if rest, found := strings.CutPrefix(cell[start:], "'"); found && formula(rest) {
			plain.WriteString(cell[written:start])
			written = start + 1
		}
	}
	return plain.String() + cell[written:]
}

// cellStarts returns the places in a cell at which a spreadsheet may begin a cell. Behind a comma it does not, because
// the file quotes cells that have one.
func cellStarts(cell string) iter.Seq[int] {
	return func(yield func(int) bool) {
		for start := 0; yield(start); {
			next := strings.IndexAny(cell[start:], ";|\t\r\n")
			if next < 0 {
				return
			}
			start += next + 1
		}
	}
}

// formula reports whether a spreadsheet may take a text for a formula, with or without quotation marks in front. Some
// take full-width characters for the plain ones.
func formula(text string) bool {
	text = strings.TrimLeft(text, `'"`)
	for _, prefix := range []string{"=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"} {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}
