package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Names in a data directory, see the package documentation.
const (
	partialName     = "restore.partial"
	committedPrefix = "restore.committed-"
	readyName       = "restore.ready"
	replacedPrefix  = "replaced-"

	stampLayout = "20060102T150405.000Z"
)

// ErrNotEmpty is returned by Restore for a data directory that has data.
var ErrNotEmpty = errors.New("it has data")

// ErrPending is returned by Check while a restore was begun and not completed.
var ErrPending = errors.New("a restore into the data directory was interrupted: start the service, which completes it")

// Target is a data directory.
type Target struct {
	Dir  string
	Keep []string // names that are no data, such as those of locks: they stay where they are

	// OnStep, if it is not nil, is called before each change. Tests kill the process in it.
	OnStep func()
}

func (t *Target) step() {
	if t.OnStep != nil {
		t.OnStep()
	}
}

func (t *Target) path(name string) string { return filepath.Join(t.Dir, name) }

// Restore replaces the data by the backup in dir, which it verifies first. It fails with ErrNotEmpty if there is data,
// unless replace is set: then the data moves to the folder that Restore returns, within the data directory. If Restore
// fails or is killed before the last file is copied, the data is unchanged; afterwards Finish completes it. Nobody may
// use the data during a restore.
func (t *Target) Restore(ctx context.Context, dir string, replace bool) (m *Manifest, replaced string, err error) {
	if err := t.Finish(); err != nil {
		return nil, "", err
	}
	data, err := t.data()
	if err != nil {
		return nil, "", err
	}
	if len(data) > 0 && !replace {
		return nil, "", fmt.Errorf("restore into %q: %w", t.Dir, ErrNotEmpty)
	}
	if m, err = Verify(dir); err != nil {
		return nil, "", err
	}
	if err := t.copy(ctx, dir, m); err != nil {
		return nil, "", errors.Join(fmt.Errorf("restore into %q: %w", t.Dir, err), os.RemoveAll(t.path(partialName)))
	}
	stamp := time.Now().UTC().Format(stampLayout)
	t.step()
	if err := rename(t.path(partialName), t.path(committedPrefix+stamp)); err != nil {
		return nil, "", fmt.Errorf("restore into %q: %w", t.Dir, err)
	}
	if len(data) > 0 {
		replaced = t.path(replacedPrefix + stamp)
	}
	return m, replaced, t.Finish()
}

// copy copies the files of a backup to the first state of a restore, and returns when they are on the disk.
func (t *Target) copy(ctx context.Context, dir string, m *Manifest) error {
	partial := t.path(partialName)
	t.step()
	if err := os.Mkdir(partial, dirMode); err != nil {
		return err
	}
	for _, f := range m.Files {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		t.step()
		name := filepath.FromSlash(f.Name)
		if err := f.copyFile(filepath.Join(dir, name), filepath.Join(partial, name)); err != nil {
			return err
		}
	}
	t.step()
	return errors.Join(syncFolders(partial), syncDir(t.Dir))
}

func (f *File) copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), dirMode); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	if err := f.copyTo(out, in); err != nil {
		return errors.Join(err, out.Close())
	}
	return errors.Join(out.Sync(), out.Close())
}

// Finish completes a restore that was interrupted after the last file was copied, or removes what one has left that was
// interrupted before. Nobody may use the data while Finish runs.
func (t *Target) Finish() error {
	if err := t.finish(); err != nil {
		return fmt.Errorf("complete the restore into %q: %w", t.Dir, err)
	}
	return nil
}

func (t *Target) finish() error {
	entries, err := os.ReadDir(t.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == partialName {
			if err := os.RemoveAll(t.path(partialName)); err != nil {
				return err
			}
		}
		if stamp, ok := strings.CutPrefix(e.Name(), committedPrefix); ok {
			if err := t.replaceData(e.Name(), t.path(replacedPrefix+stamp)); err != nil {
				return err
			}
		}
	}
	return t.moveIn()
}

// replaceData moves the data to the folder replaced, and makes a committed restore ready.
func (t *Target) replaceData(committed, replaced string) error {
	data, err := t.data()
	if err != nil {
		return err
	}
	for _, name := range data {
		t.step()
		if err := os.Mkdir(replaced, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		t.step()
		if err := os.Rename(t.path(name), filepath.Join(replaced, name)); err != nil {
			return err
		}
	}
	if err := syncDir(replaced); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	t.step()
	return rename(t.path(committed), t.path(readyName))
}

// moveIn moves the files of a restore that is ready to their places.
func (t *Target) moveIn() error {
	ready, err := os.ReadDir(t.path(readyName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range ready {
		t.step()
		if err := os.Rename(filepath.Join(t.path(readyName), e.Name()), t.path(e.Name())); err != nil {
			return err
		}
	}
	t.step()
	if err := syncDir(t.Dir); err != nil {
		return err
	}
	t.step()
	return errors.Join(os.Remove(t.path(readyName)), syncDir(t.Dir))
}

// data returns the names of the data.
func (t *Target) data() ([]string, error) {
	entries, err := os.ReadDir(t.Dir)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(remaining(entries), func(name string) bool {
		return slices.Contains(t.Keep, name) || isRestore(name) || strings.HasPrefix(name, replacedPrefix)
	}), nil
}

func isRestore(name string) bool {
	return name == partialName || name == readyName || strings.HasPrefix(name, committedPrefix)
}

// Check returns ErrPending if a restore was begun and not completed.
func (t *Target) Check() error {
	entries, err := os.ReadDir(t.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if isRestore(e.Name()) && e.Name() != partialName {
			return fmt.Errorf("%w (%s)", ErrPending, e.Name())
		}
	}
	return nil
}
