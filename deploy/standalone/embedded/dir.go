// Package embedded is the data directory of a standalone service: the names of what is in it, and its broker, for the
// programs that use them.
package embedded

import "path/filepath"

// What the data directory holds. A backup has all of it, except for the locks and the address.
const (
	LinksName        = "links.db"
	ClicksName       = "clicks.db"
	SpoolName        = "spool"
	BrokerName       = "broker"
	BrokerSecretName = "broker.secret" // not in the broker's directory, so that the click log can be deleted without it
	BrokerAddrName   = "broker.addr"   // the address of the broker, while the service runs
	LockName         = "lock"          // held while the service runs, or a restore
	BackupLockName   = "backup.lock"   // held during a backup, a restore, a move, and the deletion of counted records
)

// Dir is the path of a data directory.
type Dir string

// Links returns the path of the link store.
func (d Dir) Links() string { return d.join(LinksName) }

// Clicks returns the path of the click store.
func (d Dir) Clicks() string { return d.join(ClicksName) }

// Spool returns the directory of the spool.
func (d Dir) Spool() string { return d.join(SpoolName) }

// Broker returns the directory of the broker's topics.
func (d Dir) Broker() string { return d.join(BrokerName) }

// BrokerSecret returns the path of the broker's password.
func (d Dir) BrokerSecret() string { return d.join(BrokerSecretName) }

// BrokerAddr returns the path of the broker's address.
func (d Dir) BrokerAddr() string { return d.join(BrokerAddrName) }

// Lock returns the path of the lock of the service.
func (d Dir) Lock() string { return d.join(LockName) }

// BackupLock returns the path of the lock of backups.
func (d Dir) BackupLock() string { return d.join(BackupLockName) }

func (d Dir) join(name string) string { return filepath.Join(string(d), name) }
