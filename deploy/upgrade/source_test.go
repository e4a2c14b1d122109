package upgrade_test

import (
	"bytes"
	"os/exec"
	"testing"
)

// TestSource compares the source in the fixture with the history, where the clone has it.
func TestSource(t *testing.T) {
	if err := exec.Command("git", "-C", moduleRoot, "cat-file", "-e", release+"^{commit}").Run(); err != nil {
		t.Skipf("NOT COMPARED: this clone has no history of %s", release)
	}
	files := readArchive(t, fixture(release, "source.tar.zst"))
	if len(files) < 100 {
		t.Errorf("only %d files", len(files))
	}
	for name, content := range files {
		committed, err := exec.Command("git", "-C", moduleRoot, "show", release+":"+name).Output()
		if err != nil || !bytes.Equal(content, committed) {
			t.Errorf("%s is not that of %s: %v", name, release, err)
		}
	}
}
