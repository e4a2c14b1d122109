package service

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
)

const (
	privateDir  = 0o700
	privateFile = 0o600
)

// KeepPrivate creates dir if it does not exist, and removes the access of other users to it and to everything in it. It
// also sets the umask of the process, because engines create files later with wider permissions. Files that belong to
// another user are logged and left unchanged: an operator may have set up such a directory on purpose.
func KeepPrivate(dir string, log *slog.Logger) error {
	syscall.Umask(0o777 &^ privateDir)
	if err := os.MkdirAll(dir, privateDir); err != nil {
		return fmt.Errorf("create %q: %w", dir, err)
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type()&fs.ModeSymlink != 0 && path != dir { // a link may point outside of dir
			return ignoreGone(err)
		}
		return ignoreGone(restrict(path, entry, log))
	})
	if err != nil {
		return fmt.Errorf("restrict access to %q: %w", dir, err)
	}
	return nil
}

// restrict removes the access of other users to a file or directory, the entry at path.
func restrict(path string, entry fs.DirEntry, log *slog.Logger) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	var mode fs.FileMode
	switch {
	case info.IsDir() || info.Mode()&fs.ModeSymlink != 0: // dir itself may be a link to a directory
		mode = privateDir
	case info.Mode().IsRegular():
		mode = privateFile
	default:
		return nil
	}
	if info.Mode() == info.Mode().Type()|mode {
		return nil
	}
	err = os.Chmod(path, mode)
	if errors.Is(err, fs.ErrPermission) {
		log.Warn("other users of this machine may have access", "path", path, "mode", info.Mode(), "error", err)
		return nil
	}
	return err
}

// ignoreGone drops the error of a file that was removed in the meantime: another process may use the databases.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
