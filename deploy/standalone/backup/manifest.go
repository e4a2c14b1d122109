package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

const (
	// ManifestName is the file that makes a directory a backup. It is written last.
	ManifestName = "manifest.json"
	// Format is the version of the format. A program reads its own version and older ones.
	Format = 1

	maxManifest = 64 << 20 // bytes
)

// ErrNoBackup is returned for a directory without a manifest.
var ErrNoBackup = errors.New("it has no " + ManifestName + ": it is no backup, or one that was interrupted")

// Manifest describes a backup.
type Manifest struct {
	Format  int       `json:"format"`
	Program string    `json:"program"` // the release that made the backup
	Begun   time.Time `json:"begun"`   // what was answered before this time is in the backup
	Ended   time.Time `json:"ended"`   // what was answered after this time is not
	Links   int64     `json:"links"`   // in the link store
	Clicks  int64     `json:"clicks"`  // in the click store, without those in the log and in the spool
	Files   []File    `json:"files"`
}

// File is a file of a backup.
type File struct {
	Name   string `json:"name"` // relative to the directory, with slashes
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // hexadecimal
}

// sealed is the content of the manifest's file. The checksum covers the manifest as compact JSON.
type sealed struct {
	Manifest json.RawMessage `json:"manifest"`
	SHA256   string          `json:"sha256"`
}

// Bytes returns the content of the manifest's file.
func (m *Manifest) Bytes() ([]byte, error) {
	content, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode manifest: %w", err)
	}
	out, err := json.MarshalIndent(sealed{content, hexSum(content)}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode manifest: %w", err)
	}
	return append(out, '\n'), nil
}

// ParseManifest parses the content of a manifest's file and checks it: the checksum, the format, and that the files are
// within the directory, each one once.
func ParseManifest(content []byte) (*Manifest, error) {
	var s sealed
	if err := json.Unmarshal(content, &s); err != nil {
		return nil, fmt.Errorf("the manifest is damaged: %w", err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, s.Manifest); err != nil {
		return nil, fmt.Errorf("the manifest is damaged: %w", err)
	}
	if hexSum(compact.Bytes()) != s.SHA256 {
		return nil, errors.New("the manifest is damaged: its checksum is wrong")
	}
	m := new(Manifest)
	if err := json.Unmarshal(s.Manifest, m); err != nil {
		return nil, fmt.Errorf("the manifest is damaged: %w", err)
	}
	if m.Format < 1 || m.Format > Format {
		return nil, fmt.Errorf("the backup has format %d, this program reads formats up to %d: use the release that made "+
			"it, %s",
			m.Format, Format, m.Program)
	}
	seen := make(map[string]bool)
	for _, f := range m.Files {
		if !validName(f.Name) || f.Size < 0 || seen[f.Name] {
			return nil, fmt.Errorf("the manifest has a file that cannot be: %q of %d bytes", f.Name, f.Size)
		}
		seen[f.Name] = true
	}
	return m, nil
}

func validName(name string) bool {
	return filepath.IsLocal(name) && path.Clean(name) == name && !strings.ContainsAny(name, "\\\x00") &&
		name != "." && name != ManifestName
}

// Has reports whether the backup has a file.
func (m *Manifest) Has(name string) bool {
	for _, f := range m.Files {
		if f.Name == name {
			return true
		}
	}
	return false
}

// TotalSize returns the bytes of all files.
func (m *Manifest) TotalSize() (size int64) {
	for _, f := range m.Files {
		size += f.Size
	}
	return size
}

// ReadManifest reads the manifest of the backup in dir. ErrNoBackup if there is none.
func ReadManifest(dir string) (*Manifest, error) {
	f, err := os.Open(filepath.Join(dir, ManifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("backup %q: %w", dir, ErrNoBackup)
	}
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxManifest))
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	m, err := ParseManifest(content)
	if err != nil {
		return nil, fmt.Errorf("backup %q: %w", dir, err)
	}
	return m, nil
}

// Verify reads the backup in dir and returns its manifest, and an error that names each file that is not as it was
// written.
func Verify(dir string) (*Manifest, error) {
	m, err := ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, f := range m.Files {
		if err := f.check(filepath.Join(dir, filepath.FromSlash(f.Name))); err != nil {
			errs = append(errs, fmt.Errorf("backup %q is damaged: %w", dir, err))
		}
	}
	return m, errors.Join(errs...)
}

// check returns an error if the file at path is not f.
func (f *File) check(path string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	return f.copyTo(io.Discard, in)
}

// copyTo copies from to to and returns an error if it is not f.
func (f *File) copyTo(to io.Writer, from io.Reader) error {
	sum := sha256.New()
	size, err := io.Copy(to, io.TeeReader(io.LimitReader(from, f.Size+1), sum))
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	if size != f.Size {
		return fmt.Errorf("%s does not have its %d bytes", f.Name, f.Size)
	}
	if hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
		return fmt.Errorf("%s has another checksum", f.Name)
	}
	return nil
}

func hexSum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
