package fair

// MaxPaced is maxPaced.
const MaxPaced = maxPaced

// Kept returns the number of clients that are remembered.
func (p *Pace[K]) Kept() int { return len(p.used) }

// Clients returns the number of clients that have places or wait.
func (t *Turns[K]) Clients() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.clients)
}

// Networks returns the number of networks that are counted.
func (c *Count) Networks() (n int) {
	for i := range c.shards {
		n += len(c.shards[i].open)
	}
	return n
}
