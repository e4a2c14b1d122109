package testengines

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"linkstream/schema/filelock"
)

const (
	folderPrefix = "linkstream-testengines-"
	lockSuffix   = ".lock"
)

// memoryNeeded is how many bytes must be free for a folder in memory: several times what the engines of a package
// write.
const memoryNeeded = 4 << 30

// TempFolder creates a folder for engines whose data need not outlast this process, and returns what removes it: in
// memory, where there is room, otherwise on disk. A process that is killed leaves its folder, which the next call of
// any process removes.
func TempFolder() (dir string, remove func() error, err error) {
	if parent := "/dev/shm"; hasRoom(parent, memoryNeeded) {
		return tempFolder(parent)
	}
	return DiskFolder()
}

// DiskFolder is TempFolder, but the folder is on disk: for measurements.
func DiskFolder() (dir string, remove func() error, err error) { return tempFolder(os.TempDir()) }

// tempFolder creates a folder in parent and holds a lock beside it until the folder is removed.
func tempFolder(parent string) (dir string, remove func() error, err error) {
	if err := removeAbandoned(parent); err != nil {
		return "", nil, err
	}
	dir = filepath.Join(parent, folderPrefix+rand.Text())
	lock, err := filelock.TryAcquire(dir + lockSuffix) // before there is a folder to remove
	if err != nil {
		return "", nil, err
	}
	remove = func() error { return errors.Join(os.RemoveAll(dir), os.Remove(dir+lockSuffix), lock.Release()) }
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, errors.Join(err, remove())
	}
	return dir, remove, nil
}

// removeAbandoned removes the folders in parent whose lock nobody holds.
func removeAbandoned(parent string) error {
	dirs, err := filepath.Glob(filepath.Join(parent, folderPrefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if strings.HasSuffix(dir, lockSuffix) {
			continue
		}
		lock, err := filelock.TryAcquire(dir + lockSuffix)
		if err != nil {
			continue // it is in use, or another user's
		}
		if err := errors.Join(os.RemoveAll(dir), os.RemoveAll(dir+lockSuffix), lock.Release()); err != nil {
			return err
		}
	}
	return nil
}
