//go:build deploy

package upgrade_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"linkstream/schema/testkit"
)

// writeArchive writes files, by their names in slash form, to a .tar.zst. The same files always make the same archive.
func writeArchive(t *testing.T, path string, files map[string][]byte) {
	t.Helper()
	var out bytes.Buffer
	zip, err := zstd.NewWriter(&out, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	testkit.Must(t, err)
	w := tar.NewWriter(zip)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		testkit.Must(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(files[name]))}))
		_, err := w.Write(files[name])
		testkit.Must(t, err)
	}
	testkit.Must(t, w.Close())
	testkit.Must(t, zip.Close())
	writeFile(t, path, out.Bytes())
}

// readArchive is the inverse of writeArchive.
func readArchive(t *testing.T, path string) map[string][]byte {
	t.Helper()
	zip, err := zstd.NewReader(bytes.NewReader(readFile(t, path)))
	testkit.Must(t, err)
	defer zip.Close()
	files := map[string][]byte{}
	for r := tar.NewReader(zip); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		testkit.Must(t, err)
		files[header.Name], err = io.ReadAll(r)
		testkit.Must(t, err)
	}
}

// writeFiles writes files below a folder.
func writeFiles(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, content := range files {
		writeFile(t, filepath.Join(dir, filepath.FromSlash(name)), content)
	}
}

// readFiles returns the files below a folder, by their names in slash form.
func readFiles(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	tree := os.DirFS(dir)
	testkit.Must(t, fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		files[name], err = fs.ReadFile(tree, name)
		return err
	}))
	return files
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

// writeJSON writes a value in lines that a diff shows.
func writeJSON(t *testing.T, path string, value any) {
	t.Helper()
	text, err := json.MarshalIndent(value, "", "\t")
	testkit.Must(t, err)
	writeFile(t, path, append(text, '\n'))
}

func readJSON[T any](t *testing.T, path string) (value T) {
	t.Helper()
	testkit.Must(t, json.Unmarshal(readFile(t, path), &value))
	return value
}
