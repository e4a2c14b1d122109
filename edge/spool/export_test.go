package spool

import "os"

// Hold locks a lane as an Append that waits for the disk does.
func (l *Lane) Hold() (release func()) {
	l.mu.Lock()
	return l.mu.Unlock
}

// HasSpare reports whether the lane has a segment for the time when its active one is full.
func (l *Lane) HasSpare() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spare != nil
}

// OnFsync calls f before each fsync(2) from now on.
func (s *Spool) OnFsync(f func(path string)) {
	s.fsync = func(file *os.File) error {
		f(file.Name())
		return file.Sync()
	}
}
