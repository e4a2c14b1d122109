package spool

// Hold locks a lane as an Append that waits for the disk does.
func (l *Lane) Hold() (release func()) {
	l.mu.Lock()
	return l.mu.Unlock
}
