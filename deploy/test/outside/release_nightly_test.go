//go:build deploy && nightly

package outside_test

import (
	"bytes"
	"testing"

	"linkstream/deploy/test/launch"
	"linkstream/schema/testkit"
)

// TestReleaseOfAllPlatforms makes a whole release twice, in two folders.
func TestReleaseOfAllPlatforms(t *testing.T) {
	key, _ := newKey(t)
	files, again := makeRelease(t, launch.Root(), key), makeRelease(t, copySource(t), key)
	wantFiles(t, files, "SHA256SUMS", "SHA256SUMS.sig", wheel, "linkstream-V.tgz", "linkstream_V.cdx.json",
		"linkstream_V_amd64.deb", "linkstream_V_arm64.deb", "linkstream_V_darwin_arm64.tar.gz",
		"linkstream_V_linux_amd64.tar.gz", "linkstream_V_linux_arm64.tar.gz")
	for _, p := range [][2]string{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"}} {
		testArchive(t, files, p[0], p[1])
	}
	testkit.Equal(t, "files", len(again), len(files))
	for name, content := range files {
		if !bytes.Equal(content, again[name]) {
			t.Errorf("%s differs", name)
		}
	}
}
