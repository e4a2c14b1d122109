package redirect

// MaxForwarded is maxForwarded.
const MaxForwarded = maxForwarded

// Forward returns location with the visitor's query string.
func Forward(location, query string) string {
	return string(new(forwardBuffer).forward([]byte(location), []byte(query)))
}
