//go:build deploy

package upgrade_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"linkstream/schema/testkit"
)

// readArchive returns the files of a .tar.zst by their names in slash form.
func readArchive(t *testing.T, path string) map[string][]byte {
	t.Helper()
	zip, err := zstd.NewReader(bytes.NewReader(readFile(t, path)))
	testkit.Must(t, err)
	defer zip.Close()
	return readTar(t, zip)
}

func readTar(t *testing.T, from io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(from); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		testkit.Must(t, err)
		if header.Typeflag == tar.TypeReg {
			files[header.Name], err = io.ReadAll(r)
			testkit.Must(t, err)
		}
	}
}

// writeFiles writes files below a folder.
func writeFiles(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, content := range files {
		writeFile(t, filepath.Join(dir, filepath.FromSlash(name)), content)
	}
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	testkit.Must(t, os.WriteFile(path, content, 0o600))
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	testkit.Must(t, err)
	return content
}

func readJSON[T any](t *testing.T, path string) (value T) {
	t.Helper()
	testkit.Must(t, json.Unmarshal(readFile(t, path), &value))
	return value
}
