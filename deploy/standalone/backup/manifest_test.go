package backup_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"linkstream/deploy/standalone/backup"
	"linkstream/schema/testkit"
)

func example() *backup.Manifest {
	return &backup.Manifest{Format: backup.Format, Program: "v1", Begun: time.Unix(1, 0).UTC(),
		Ended: time.Unix(2, 0).UTC(),
		Links: 3, Clicks: 4, Files: []backup.File{{Name: "a/b.db", Size: 5, SHA256: strings.Repeat("0", 64)}}}
}

func encode(tb testing.TB, m *backup.Manifest) []byte {
	tb.Helper()
	content, err := m.Bytes()
	testkit.Must(tb, err)
	return content
}

func TestParseManifest(t *testing.T) {
	t.Run("returns what was encoded", func(t *testing.T) {
		m, err := backup.ParseManifest(encode(t, example()))
		testkit.Must(t, err)
		testkit.Equal(t, "manifest", m, example())
		testkit.Equal(t, "size", m.TotalSize(), 5)
		testkit.Equal(t, "has its file", m.Has("a/b.db") && !m.Has("a"), true)
	})
	t.Run("notices every changed digit", func(t *testing.T) {
		content := encode(t, example())
		for i, c := range content {
			if c < '0' || c > '9' {
				continue
			}
			changed := bytes.Clone(content)
			changed[i] = '0' + (c-'0'+1)%10
			if m, err := backup.ParseManifest(changed); err == nil {
				t.Fatalf("accepted with byte %d changed: %+v", i, m)
			}
		}
	})
	for name, change := range map[string]func(*backup.Manifest){
		"a newer format":          func(m *backup.Manifest) { m.Format = backup.Format + 1 },
		"no format":               func(m *backup.Manifest) { m.Format = 0 },
		"a file outside":          func(m *backup.Manifest) { m.Files[0].Name = "../links.db" },
		"an absolute name":        func(m *backup.Manifest) { m.Files[0].Name = "/etc/passwd" },
		"a name that is not one":  func(m *backup.Manifest) { m.Files[0].Name = "a//b" },
		"no name":                 func(m *backup.Manifest) { m.Files[0].Name = "" },
		"the manifest itself":     func(m *backup.Manifest) { m.Files[0].Name = backup.ManifestName },
		"a negative size":         func(m *backup.Manifest) { m.Files[0].Size = -1 },
		"a file that comes twice": func(m *backup.Manifest) { m.Files = append(m.Files, m.Files[0]) },
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			m := example()
			change(m)
			if _, err := backup.ParseManifest(encode(t, m)); err == nil {
				t.Error("accepted")
			}
		})
	}
	t.Run("of a directory without one says so", func(t *testing.T) {
		if _, err := backup.ReadManifest(t.TempDir()); !errors.Is(err, backup.ErrNoBackup) {
			t.Errorf("got %v", err)
		}
	})
}

func FuzzParseManifest(f *testing.F) {
	f.Add(encode(f, example()))
	f.Add([]byte(`{"manifest":{},"sha256":""}`))
	f.Add([]byte(`{"manifest":null}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		m, err := backup.ParseManifest(content)
		if err != nil {
			return
		}
		again, err := backup.ParseManifest(encode(t, m))
		testkit.Must(t, err)
		testkit.Equal(t, "manifest", again.Files, m.Files)
		for _, file := range m.Files {
			if strings.HasPrefix(file.Name, "/") || strings.Contains("/"+file.Name+"/", "/../") {
				t.Errorf("a file is outside: %q", file.Name)
			}
		}
	})
}
