package transfer

import "strings"

// Guard returns a cell that no spreadsheet takes for a formula (OWASP, "CSV Injection"): a cell that begins like a
// formula gets an apostrophe in front. So does a cell that looks guarded already, so that Unguard restores every cell.
func Guard(cell string) string {
	if formula(strings.TrimLeft(cell, "'")) {
		return "'" + cell
	}
	return cell
}

// Unguard undoes Guard.
func Unguard(cell string) string {
	if rest, found := strings.CutPrefix(cell, "'"); found && formula(strings.TrimLeft(rest, "'")) {
		return rest
	}
	return cell
}

// formula reports whether a spreadsheet may take a cell for a formula. Some take full-width characters for the plain
// ones.
func formula(cell string) bool {
	for _, prefix := range []string{"=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"} {
		if strings.HasPrefix(cell, prefix) {
			return true
		}
	}
	return false
}
