package turns

// MaxKept is maxKept.
const MaxKept = maxKept

// Kept returns the number of clients that are remembered.
func (b *Bucket) Kept() int { return len(b.used) }

// Kept returns the number of clients that hold something.
func (b *Bound) Kept() int { return len(b.held) }

// Clients returns the number of clients that have places or wait.
func (t *Turns) Clients() int { return len(t.clients) }
