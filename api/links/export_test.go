package links

// ParseCursor returns the text of the cursor with a text. ok is false if no list has such a cursor.
func ParseCursor(text string) (again string, ok bool) {
	c, ok := parseCursor(text)
	return c.String(), ok
}
