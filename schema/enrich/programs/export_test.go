package programs

// Known reports whether one of the patterns of known programs matches.
func Known(header string) bool { return known().match(header) }

// Unfiltered is the number of patterns that are tried for every header.
func Unfiltered() int { return len(known().others) }
