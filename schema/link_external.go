package schema

// MaxExternalIDLen is how many characters an external ID may have.
const MaxExternalIDLen = 255

// ValidExternalID reports whether id has 1 to MaxExternalIDLen visible characters of ASCII.
func ValidExternalID(id string) bool {
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return 0 < len(id) && len(id) <= MaxExternalIDLen
}

// ErrExternalIDTaken is the outcome of a link whose external ID belongs to another link of the account. Its code is
// CodeConflict.
var ErrExternalIDTaken error = Errorf(CodeConflict, "the external ID is in use")

// ReuseKey is what links have in common that can stand for each other.
type ReuseKey struct {
	DomainID int64
	URL      string
}

// ReuseKey returns the link's key.
func (l Link) ReuseKey() ReuseKey { return ReuseKey{l.DomainID, l.URL} }
