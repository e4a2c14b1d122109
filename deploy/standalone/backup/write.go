package backup

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Modes of files and directories of backups and restores, whatever the umask: backups hold secrets.
const (
	dirMode  = 0o700
	fileMode = 0o600
)

// Create makes dir, which must not exist or be empty, a backup: fill writes its files and describes them. If Create
// fails, it removes what is in dir; if the process is killed, what it has written stays, without a manifest. It returns
// the manifest, to which it has added the files.
func Create(ctx context.Context, dir string, fill func(dir string) (*Manifest, error)) (m *Manifest, err error) {
	existed, err := makeEmpty(dir)
	if err != nil {
		return nil, fmt.Errorf("create backup: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("create backup: %w", err), discard(dir, !existed))
		}
	}()
	if m, err = fill(dir); err != nil {
		return nil, err
	}
	m.Format = Format
	if m.Files, err = seal(ctx, dir); err != nil {
		return nil, err
	}
	content, err := m.Bytes()
	if err != nil {
		return nil, err
	}
	name := filepath.Join(dir, ManifestName)
	if err := writeSynced(name+".partial", content); err != nil {
		return nil, err
	}
	if err := rename(name+".partial", name); err != nil {
		return nil, err
	}
	return m, syncDir(filepath.Dir(filepath.Clean(dir))) // dir itself may be new
}

// makeEmpty creates dir, or checks that it is empty.
func makeEmpty(dir string) (existed bool, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, os.MkdirAll(dir, dirMode)
	}
	if err != nil {
		return true, err
	}
	switch left := remaining(entries); {
	case len(left) == 0:
		return true, os.Chmod(dir, dirMode)
	case slices.Contains(left, ManifestName):
		return true, fmt.Errorf("%q has a backup already", dir)
	default:
		return true, fmt.Errorf("%q is not empty: if a backup was interrupted, delete what it has left", dir)
	}
}

// remaining returns the names of entries that are not the file system's own.
func remaining(entries []os.DirEntry) (names []string) {
	for _, e := range entries {
		if e.Name() != "lost+found" {
			names = append(names, e.Name())
		}
	}
	return names
}

// discard removes what is in dir, and dir itself if it is to.
func discard(dir string, itself bool) error {
	if itself {
		return os.RemoveAll(dir)
	}
	entries, err := os.ReadDir(dir)
	errs := []error{err}
	for _, name := range remaining(entries) {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, name)))
	}
	return errors.Join(errs...)
}

// seal makes the files in dir private, writes them to the disk, and returns them in the order of their names.
func seal(ctx context.Context, dir string) (files []File, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case path != dir && entry.Name() == "lost+found":
			return fs.SkipDir
		case entry.IsDir():
			return os.Chmod(path, dirMode)
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		file := File{Name: filepath.ToSlash(name)}
		if err := file.seal(path); err != nil {
			return err
		}
		files = append(files, file)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	return files, syncFolders(dir)
}

func (f *File) seal(path string) error {
	in, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	sum := sha256.New()
	if f.Size, err = io.Copy(sum, in); err != nil {
		return err
	}
	f.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return errors.Join(in.Chmod(fileMode), in.Sync())
}

// writeSynced writes a new file to the disk.
func writeSynced(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

// rename renames a file or folder within its parent, and returns when that is on the disk.
func rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncDir(filepath.Dir(to))
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// syncFolders writes the names in dir and in its folders to the disk.
func syncFolders(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if path != dir && entry.Name() == "lost+found" {
			return fs.SkipDir
		}
		return syncDir(path)
	})
}
