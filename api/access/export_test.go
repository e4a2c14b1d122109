package access

var ParseBearer = parseBearer

// ReparsePasswordHash returns the hash as it was understood.
func ReparsePasswordHash(s string) (string, error) {
	h, err := parsePasswordHash(s)
	return h.String(), err
}
