//go:build deploy && nightly

package outside_test

import (
	"bytes"
	"testing"

	"linkstream/deploy/test/launch"
	"linkstream/schema/testkit"
)

func TestReleaseHasTheSameBytesElsewhere(t *testing.T) {
	key, _ := newKey(t)
	files, again := makeRelease(t, launch.Root(), key), makeRelease(t, copySource(t), key)
	testkit.Equal(t, "files", len(again), len(files))
	for name, content := range files {
		if !bytes.Equal(content, again[name]) {
			t.Errorf("%s differs", name)
		}
	}
}
