package testengines_test

import (
	"os"
	"path/filepath"
	"testing"

	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema/testkit"
)

func TestTempFolder(t *testing.T) {
	parent := t.TempDir()
	abandoned := filepath.Join(parent, "linkstream-testengines-of-a-killed-process")
	testkit.Must(t, os.MkdirAll(filepath.Join(abandoned, "data"), 0o700))
	testkit.Must(t, os.WriteFile(abandoned+".lock", nil, 0o600))
	testkit.Must(t, os.Mkdir(filepath.Join(parent, "other"), 0o700))

	first, removeFirst, err := testengines.TempFolderIn(parent)
	testkit.Must(t, err)
	second, removeSecond, err := testengines.TempFolderIn(parent)
	testkit.Must(t, err)
	testkit.Equal(t, "folders and locks", names(t, parent),
		[]string{filepath.Base(min(first, second)), filepath.Base(min(first, second)) + ".lock",
			filepath.Base(max(first, second)), filepath.Base(max(first, second)) + ".lock", "other"})

	testkit.Must(t, os.WriteFile(filepath.Join(first, "file"), []byte("data"), 0o600))
	testkit.Must(t, removeFirst())
	testkit.Must(t, removeSecond())
	testkit.Equal(t, "folders that stay", names(t, parent), []string{"other"})
}

// names returns the names of what is in a folder, sorted.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	testkit.Must(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}
