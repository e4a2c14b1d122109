// Package embedded names what is in the data directory of a standalone service, for the programs that use it.
package embedded

import "path/filepath"

// What the data directory holds. A backup has the stores and the spool.
const (
	LinksName      = "links.db"
	ClicksName     = "clicks.db"
	SpoolName      = "spool"
	LockName       = "lock"        // held while the service runs, or a restore
	BackupLockName = "backup.lock" // held during a backup, a restore and a move
)

// Dir is the path of a data directory.
type Dir string

// Links returns the path of the link store.
func (d Dir) Links() string { return d.join(LinksName) }

// Clicks returns the path of the click store.
func (d Dir) Clicks() string { return d.join(ClicksName) }

// Spool returns the directory of the spool.
func (d Dir) Spool() string { return d.join(SpoolName) }

// Lock returns the path of the lock of the service.
func (d Dir) Lock() string { return d.join(LockName) }

// BackupLock returns the path of the lock of backups.
func (d Dir) BackupLock() string { return d.join(BackupLockName) }

func (d Dir) join(name string) string { return filepath.Join(string(d), name) }
