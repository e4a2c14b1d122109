package visitorhash_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"linkstream/edge/visitorhash"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// openKeys opens keys in a file, and requires a log without warnings.
func openKeys(t testing.TB, path string, now time.Time, s *store) *visitorhash.Keys {
	t.Helper()
	log := new(testkit.Buffer)
	keys := visitorhash.Open(path, now, s, log.Logger())
	testkit.Equal(t, "log", log.String(), "")
	return keys
}

// savedDays returns the days whose keys are in a file.
func savedDays(t testing.TB, path string) map[string]bool {
	t.Helper()
	content, err := os.ReadFile(path)
	testkit.Must(t, err)
	var saved map[string][]byte
	testkit.Must(t, json.Unmarshal(content, &saved))
	days := map[string]bool{}
	for name, key := range saved {
		days[name[len(schema.SharedVisitorKeys):]] = len(key) == 16
	}
	return days
}

// A process that starts while the store is away has the keys of the one before, and no key is kept for longer than 48
// hours.
func TestKeysInFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	s := openStore(t)
	first := openKeys(t, path, noon, s)
	testkit.Equal(t, "hash without keys", first.Hash(noon, 1, client, agent), 0)
	testkit.Must(t, first.Update(t.Context(), noon.Add(9*time.Hour)))
	info, err := os.Stat(path)
	testkit.Must(t, err)
	testkit.Equal(t, "mode", info.Mode(), os.FileMode(0o600))
	testkit.Equal(t, "saved", savedDays(t, path), map[string]bool{"2026-11-20": true, "2026-11-21": true})

	s.away = true
	tomorrow := noon.AddDate(0, 0, 1)
	for _, at := range []time.Time{noon, tomorrow} {
		again := openKeys(t, path, at, s)
		if again.Update(t.Context(), at) == nil {
			t.Error("no error without a store")
		}
		testkit.Equal(t, "hash after a restart", again.Hash(at, 1, client, agent), first.Hash(at, 1, client, agent))
		testkit.Equal(t, "has a hash", again.Hash(at, 1, client, agent) != 0, true)
	}
	end := noon.Truncate(24 * time.Hour).Add(36 * time.Hour) // of the first key
	running := openKeys(t, path, end.Add(-time.Second), s)
	testkit.Equal(t, "has a hash until the end", running.Hash(noon, 1, client, agent) != 0, true)
	if running.Update(t.Context(), end) == nil {
		t.Error("no error without a store")
	}
	testkit.Equal(t, "hash after the end", running.Hash(noon, 1, client, agent), 0)
	testkit.Equal(t, "saved", savedDays(t, path), map[string]bool{"2026-11-21": true})

	later := openKeys(t, path, end.AddDate(0, 0, 1), s) // whose start is the first since then
	testkit.Equal(t, "hash after days", later.Hash(tomorrow, 1, client, agent), 0)
	testkit.Equal(t, "saved", savedDays(t, path), map[string]bool{})
}

// What is in the file comes second to the store, and a file that cannot be read is replaced.
func TestKeysOfStoreAndFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	testkit.Must(t, openKeys(t, path, noon, openStore(t)).Update(t.Context(), noon))
	s := openStore(t)
	other := newKeys(s)
	testkit.Must(t, other.Update(t.Context(), noon))
	again := openKeys(t, path, noon, s)
	testkit.Must(t, again.Update(t.Context(), noon))
	testkit.Equal(t, "hash", again.Hash(noon, 1, client, agent), other.Hash(noon, 1, client, agent))
	for _, content := range []string{"", "{", "[]", `{"visitor key 2026-11-20": 7}`,
		`{"visitor key 2026-11-20": "AAAA"}`} {
		testkit.Must(t, os.WriteFile(path, []byte(content), 0o644))
		testkit.Must(t, os.WriteFile(path+".new", []byte("left by a process that was killed"), 0o644))
		damaged := visitorhash.Open(path, noon, s, slog.New(slog.DiscardHandler))
		if _, err := os.Stat(path + ".new"); !os.IsNotExist(err) {
			t.Errorf("the unfinished file is there: error %v", err)
		}
		testkit.Equal(t, "hash without a key", damaged.Hash(noon, 1, client, agent), 0)
		testkit.Must(t, damaged.Update(t.Context(), noon))
		info, err := os.Stat(path)
		testkit.Must(t, err)
		testkit.Equal(t, "mode", info.Mode(), os.FileMode(0o600))
		testkit.Equal(t, "saved", savedDays(t, path), map[string]bool{"2026-11-20": true})
	}
}

// childEnv makes the test program write keys to the file that it names until it is killed.
const childEnv = "LINKSTREAM_TEST_KEYS"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		keys := visitorhash.Open(path, noon, memory{}, slog.New(slog.DiscardHandler))
		for day := noon; ; day = day.AddDate(0, 0, 1) {
			if err := keys.Update(context.Background(), day); err != nil {
				panic(err)
			}
			if day == noon {
				fmt.Println("ready")
			}
		}
	}
	os.Exit(m.Run())
}

// memory is a store in memory.
type memory map[string][]byte

func (m memory) SharedValue(_ context.Context, name string, first []byte) ([]byte, error) {
	if m[name] == nil {
		m[name] = first
	}
	if m[name] == nil {
		return nil, schema.Errorf(schema.CodeNotFound, "no value")
	}
	return m[name], nil
}

func (m memory) DeleteSharedValues(context.Context, string, string) error { return nil }

// A process that is killed with -9 leaves keys, whenever that is.
func TestKill(t *testing.T) {
	for range 10 {
		path := filepath.Join(t.TempDir(), "keys")
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childEnv+"="+path)
		out, err := child.StdoutPipe()
		testkit.Must(t, err)
		testkit.Must(t, child.Start())
		_, err = bufio.NewReader(out).ReadString('\n')
		testkit.Must(t, err)
		time.Sleep(time.Duration(rand.IntN(20_000)) * time.Microsecond)
		testkit.Must(t, child.Process.Kill())
		_ = child.Wait() // says that it was killed
		days := savedDays(t, path)
		if len(days) == 0 {
			t.Error("no key is left")
		}
		for day := range days {
			at, err := time.Parse(time.DateOnly, day)
			testkit.Must(t, err)
			s := openStore(t)
			s.away = true
			testkit.Equal(t, "ready on "+day, openKeys(t, path, at, s).Ready(at), true)
			break
		}
	}
}
