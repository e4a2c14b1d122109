package visitorhash

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// newSuffix is behind the name of a file that is being written.
const newSuffix = ".new"

// keyFile is a file with the keys of days by their names in the store, as JSON. Only its owner can read it.
type keyFile struct {
	path string // "": none

	mu      sync.Mutex
	content []byte // of the file
}

// read returns the keys that the file has, none if there is no file.
func (f *keyFile) read() (keys map[string][]byte, err error) {
	_ = os.Remove(f.path + newSuffix) // a process that was killed may have left keys in it
	content, err := os.ReadFile(f.path)
	if err == nil {
		err = json.Unmarshal(content, &keys)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read %q: %w", f.path, err)
	}
	f.content = content
	return keys, nil
}

// write replaces the keys in the file in one step, unless it has them. Of concurrent calls the last one writes what
// keys returns last.
func (f *keyFile) write(keys func() *[]dayKey) error {
	if f.path == "" {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	named := map[string][]byte{}
	for _, key := range *keys() {
		named[nameOf(key.day)] = key.key
	}
	content, err := json.Marshal(named)
	if err != nil || bytes.Equal(content, f.content) {
		return err
	}
	if err := writeFile(f.path+newSuffix, content); err != nil {
		return err
	}
	if err := os.Rename(f.path+newSuffix, f.path); err != nil {
		return err
	}
	f.content = content
	return nil
}

// writeFile writes a new file, and syncs it: without that, a power failure could leave a renamed file empty.
func writeFile(path string, content []byte) (err error) {
	_ = os.Remove(path) // it may have another mode
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Write(content); err != nil {
		return err
	}
	return file.Sync()
}
