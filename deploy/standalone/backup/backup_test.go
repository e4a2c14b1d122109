package backup_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"linkstream/deploy/standalone/backup"
	"linkstream/schema/testkit"
)

// tree is the content of the files in a directory, by name.
type tree map[string]string

var (
	backedUp = tree{"links.db": "new links", "spool/a/1": strings.Repeat("click", 5000), "spool/a/2": "",
		"broker/x/y/z": "log"}
	oldData = tree{"links.db": "old links", "links.db-wal": "old log", "spool/b/1": "old click", "lock": ""}
)

// write creates the files in dir.
func (t tree) write(dir string) error {
	for name, content := range t {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func readTree(tb testing.TB, dir string) tree {
	tb.Helper()
	all := tree{}
	testkit.Must(tb, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[name] = string(content)
		return err
	}))
	return all
}

// without returns the files whose name does not begin with one of prefixes.
func (t tree) without(prefixes ...string) tree {
	t = maps.Clone(t)
	maps.DeleteFunc(t, func(name, _ string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
	})
	return t
}

// create makes a backup of files in dir.
func create(ctx context.Context, dir string, files tree) (*backup.Manifest, error) {
	return backup.Create(ctx, dir, func(dir string) (*backup.Manifest, error) { return example(), files.write(dir) })
}

func newBackup(tb testing.TB) string {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "backup")
	_, err := create(tb.Context(), dir, backedUp)
	testkit.Must(tb, err)
	return dir
}

func newTarget(tb testing.TB, data tree) *backup.Target {
	tb.Helper()
	t := &backup.Target{Dir: tb.TempDir(), Keep: []string{"lock"}}
	testkit.Must(tb, data.write(t.Dir))
	return t
}

func TestCreate(t *testing.T) {
	t.Run("makes files that only their owner may read, and verifies", func(t *testing.T) {
		dir := newBackup(t)
		m, err := backup.Verify(dir)
		testkit.Must(t, err)
		testkit.Equal(t, "files", readTree(t, dir).without(backup.ManifestName), backedUp)
		testkit.Equal(t, "number of files", len(m.Files), len(backedUp))
		testkit.Must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			testkit.Must(t, err)
			info, err := d.Info()
			if want := fs.FileMode(0o600); err == nil && !d.IsDir() && info.Mode() != want || d.IsDir() &&
				info.Mode().Perm() != 0o700 {
				t.Errorf("%s has mode %v", path, info.Mode())
			}
			return err
		}))
	})
	t.Run("refuses a directory that is not empty, and leaves it alone", func(t *testing.T) {
		for _, files := range []tree{{"notes": "mine"}, {backup.ManifestName: "{}"}} {
			dir := t.TempDir()
			testkit.Must(t, files.write(dir))
			if _, err := create(t.Context(), dir, backedUp); err == nil {
				t.Error("accepted")
			}
			testkit.Equal(t, "files", readTree(t, dir), files)
		}
	})
	t.Run("removes what it has written when it fails", func(t *testing.T) {
		existing, missing := t.TempDir(), filepath.Join(t.TempDir(), "missing")
		for _, dir := range []string{existing, missing} {
			failed := errors.New("failed")
			_, err := backup.Create(t.Context(), dir, func(dir string) (*backup.Manifest, error) {
				return nil, errors.Join(backedUp.write(dir), failed)
			})
			if !errors.Is(err, failed) {
				t.Errorf("got error %v", err)
			}
		}
		testkit.Equal(t, "files", readTree(t, existing), tree{})
		if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the directory is there: %v", err)
		}
	})
	t.Run("ends with its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		dir := t.TempDir()
		if _, err := create(ctx, dir, backedUp); !errors.Is(err, context.Canceled) {
			t.Errorf("got error %v", err)
		}
		testkit.Equal(t, "files", readTree(t, dir), tree{})
	})
}

func TestVerify(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"a changed byte": func(path string) error {
			content, err := os.ReadFile(path)
			content[len(content)/2] ^= 1
			return errors.Join(err, os.WriteFile(path, content, 0o600))
		},
		"a missing end": func(path string) error { return os.Truncate(path, 5) },
		"more at the end": func(path string) error {
			content, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path, append(content, 0), 0o600))
		},
		"a missing file": os.Remove,
	} {
		t.Run("notices "+name, func(t *testing.T) {
			for damaged := range backedUp.without("spool/a/2") {
				dir, target := newBackup(t), newTarget(t, oldData)
				testkit.Must(t, damage(filepath.Join(dir, damaged)))
				if _, err := backup.Verify(dir); err == nil || !strings.Contains(err.Error(), damaged) {
					t.Errorf("got error %v, want one that names %s", err, damaged)
				}
				if _, _, err := target.Restore(t.Context(), dir, true); err == nil {
					t.Error("the backup was restored")
				}
				testkit.Equal(t, "data", readTree(t, target.Dir), oldData)
			}
		})
	}
}

func TestRestore(t *testing.T) {
	t.Run("fills an empty data directory", func(t *testing.T) {
		target := newTarget(t, tree{"lock": "", "lost+found/x": ""})
		m, replaced, err := target.Restore(t.Context(), newBackup(t), false)
		testkit.Must(t, err)
		testkit.Equal(t, "links", m.Links, example().Links)
		testkit.Equal(t, "replaced", replaced, "")
		testkit.Equal(t, "data", readTree(t, target.Dir).without("lock", "lost+found"), backedUp)
		testkit.Must(t, target.Check())
	})
	t.Run("refuses to replace data unless it is told to", func(t *testing.T) {
		dir, target := newBackup(t), newTarget(t, oldData)
		if _, _, err := target.Restore(t.Context(), dir, false); !errors.Is(err, backup.ErrNotEmpty) {
			t.Fatalf("got error %v", err)
		}
		testkit.Equal(t, "data", readTree(t, target.Dir), oldData)
		_, replaced, err := target.Restore(t.Context(), dir, true)
		testkit.Must(t, err)
		testkit.Equal(t, "data", readTree(t, target.Dir).without("lock", "replaced-"), backedUp)
		testkit.Equal(t, "replaced", readTree(t, replaced), oldData.without("lock"))
		testkit.Must(t, os.WriteFile(filepath.Join(target.Dir, "links.db"), []byte("newer"), 0o600))
		_, again, err := target.Restore(t.Context(), dir, true)
		testkit.Must(t, err)
		testkit.Equal(t, "replaced the second time", readTree(t, again)["links.db"], "newer")
		testkit.Equal(t, "replaced the first time", readTree(t, replaced), oldData.without("lock"))
	})
	t.Run("ends with its context, and leaves no trace", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		target := newTarget(t, oldData)
		if _, _, err := target.Restore(ctx, newBackup(t), true); !errors.Is(err, context.Canceled) {
			t.Errorf("got error %v", err)
		}
		testkit.Equal(t, "data", readTree(t, target.Dir), oldData)
	})
}

// A child process of this test is this binary with these variables.
const (
	childEnv  = "LINKSTREAM_TEST_BACKUP"       // restore or create
	dirEnv    = "LINKSTREAM_TEST_BACKUP_DIR"   // of the backup
	targetEnv = "LINKSTREAM_TEST_BACKUP_DATA"  // the data directory
	killEnv   = "LINKSTREAM_TEST_BACKUP_KILL"  // the number of the step at which the child kills itself
	limitEnv  = "LINKSTREAM_TEST_BACKUP_LIMIT" // the greatest file that the child can write, as on a full disk
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		os.Exit(m.Run())
	}
	if err := child(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func child() error {
	if limit, err := strconv.ParseUint(os.Getenv(limitEnv), 10, 64); err == nil {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return err
		}
	}
	if os.Getenv(childEnv) == "create" {
		_, err := create(context.Background(), os.Getenv(dirEnv), backedUp)
		return err
	}
	target := &backup.Target{Dir: os.Getenv(targetEnv), Keep: []string{"lock"}}
	step, killAt := 0, 0
	killAt, _ = strconv.Atoi(os.Getenv(killEnv))
	target.OnStep = func() {
		if step++; step == killAt {
			_ = unix.Kill(os.Getpid(), unix.SIGKILL)
			select {}
		}
	}
	_, _, err := target.Restore(context.Background(), os.Getenv(dirEnv), true)
	return err
}

// runChild returns the output of a child process and whether it was killed.
func runChild(t *testing.T, env ...string) (output string, killed bool, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), cmd.ProcessState != nil && cmd.ProcessState.ExitCode() < 0, err
}

// TestKilledRestore kills a restore at each of its steps. The data is either unchanged, or, after the next process has
// completed the restore, the backup's. That process is killed at each of its steps, too.
func TestKilledRestore(t *testing.T) {
	t.Parallel()
	dir := newBackup(t)
	before, after := 0, 0
	for step := 1; ; step++ {
		target := newTarget(t, oldData)
		env := []string{childEnv + "=restore", dirEnv + "=" + dir, targetEnv + "=" + target.Dir}
		output, killed, err := runChild(t, append(env, fmt.Sprintf("%s=%d", killEnv, step))...)
		if !killed {
			if err != nil {
				t.Fatalf("%v\n%s", err, output)
			}
			break
		}
		committed := target.Check() != nil
		target.OnStep = nil
		testkit.Must(t, target.Finish())
		testkit.Must(t, target.Check())
		data := readTree(t, target.Dir)
		if committed {
			after++
			testkit.Equal(t, "data", data.without("lock", "replaced-"), backedUp)
			replaced, err := filepath.Glob(filepath.Join(target.Dir, "replaced-*"))
			testkit.Must(t, err)
			testkit.Equal(t, "replaced folders", len(replaced), 1)
			testkit.Equal(t, "replaced", readTree(t, replaced[0]), oldData.without("lock"))
		} else if data["links.db"] == oldData["links.db"] {
			before++
			testkit.Equal(t, "data", data, oldData)
		} else { // it was killed when nothing was left to do
			testkit.Equal(t, "data", data.without("lock", "replaced-"), backedUp)
		}
	}
	if before < 5 || after < 5 {
		t.Fatalf("%d kills before the restore and %d during it", before, after)
	}
}

// A restore that was completed only in part is completed by the next one, whose backup then replaces it.
func TestRestoreAfterKilledRestore(t *testing.T) {
	t.Parallel()
	dir, target := newBackup(t), newTarget(t, oldData)
	other := filepath.Join(t.TempDir(), "other")
	_, err := create(t.Context(), other, tree{"links.db": "others"})
	testkit.Must(t, err)
	for step := 1; target.Check() == nil; step++ {
		_, _, err := runChild(t, childEnv+"=restore", dirEnv+"="+dir, targetEnv+"="+target.Dir,
			fmt.Sprintf("%s=%d", killEnv, step))
		if err == nil {
			t.Fatal("no restore was interrupted")
		}
	}
	if err := target.Check(); !errors.Is(err, backup.ErrPending) {
		t.Fatalf("got %v", err)
	}
	_, replaced, err := target.Restore(t.Context(), other, true)
	testkit.Must(t, err)
	testkit.Equal(t, "data", readTree(t, target.Dir).without("lock", "replaced-"), tree{"links.db": "others"})
	testkit.Equal(t, "replaced", readTree(t, replaced), backedUp)
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	t.Run("a backup leaves nothing", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "backup")
		output, _, err := runChild(t, childEnv+"=create", dirEnv+"="+dir, limitEnv+"=4096")
		if err == nil || !strings.Contains(output, "file too large") {
			t.Errorf("got %v\n%s", err, output)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the directory is there: %v", err)
		}
	})
	t.Run("a restore leaves the data as it was", func(t *testing.T) {
		dir, target := newBackup(t), newTarget(t, oldData)
		output, _, err := runChild(t, childEnv+"=restore", dirEnv+"="+dir, targetEnv+"="+target.Dir, limitEnv+"=4096")
		if err == nil || !strings.Contains(output, "file too large") {
			t.Errorf("got %v\n%s", err, output)
		}
		testkit.Equal(t, "data", readTree(t, target.Dir), oldData)
	})
}
