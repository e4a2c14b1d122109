package redirect

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// These tests are inside of the package: what the table alone promises cannot be told from outside, where a link that
// was evicted is looked up again.

// entryOf returns an entry with a value of size bytes.
func entryOf(key string, size int) *entry[int] {
	return newEntry(0, true, len(key), key+strings.Repeat("v", size))
}

// checkTable fails if the table's account of its bytes is wrong or exceeds its budget, and returns how many entries it
// has.
func checkTable(t rapid.TB, table *table[int]) (entries int) {
	t.Helper()
	sum := int64(0)
	for i := range table.buckets {
		for e := table.buckets[i].Load(); e != nil; e = e.next.Load() {
			sum += e.bytes()
			entries++
		}
	}
	if sum != table.used || sum > table.budget {
		t.Fatalf("entries have %d bytes, accounted for are %d of %d", sum, table.used, table.budget)
	}
	return entries
}

func TestTableIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, want := newTable[int](1<<20), map[string]*entry[int]{} // has room for all
		table.mask &= rapid.Uint64().Draw(t, "mask")                  // long lists, too
		keys := rapid.SampledFrom([]string{"", "a", "b", "ab", "abc", "abcd", "abcde", "k1", "k2", "k3", "k4"})
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				e := entryOf(key, rapid.IntRange(0, 100).Draw(t, "size"))
				table.set(e)
				want[key] = e
			},
			"delete": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				table.delete(key)
				delete(want, key)
			},
			"get": func(t *rapid.T) {
				if key := keys.Draw(t, "key"); table.get([]byte(key)) != want[key] {
					t.Fatalf("%q leads to another entry", key)
				}
			},
			"": func(t *rapid.T) {
				if n := checkTable(t, table); n != len(want) {
					t.Fatalf("%d entries, want %d", n, len(want))
				}
			},
		})
	})
}

func TestTableStaysInItsBounds(t *testing.T) {
	for _, maxBytes := range []int64{0, 1, 200, 1 << 10, 32 << 10, 1 << 20} {
		table := newTable[int](maxBytes)
		for i := range 10_000 {
			table.set(entryOf(fmt.Sprint(i), rand.IntN(3000)))
			checkTable(t, table)
			if rand.IntN(3) == 0 {
				table.get([]byte(fmt.Sprint(rand.IntN(i + 1))))
			}
		}
	}
}

func TestTableAccountsForItsBytes(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	before := heap()
	table := newTable[Target](64 << 20)
	for i := range 100_000 {
		key := fmt.Sprintf("%018d", i)
		table.set(newEntry(Target{}, true, len(key), key+strings.Repeat("v", rand.IntN(600))))
	}
	used, accounted := heap()-before, table.used+int64(len(table.buckets))*bucketLen
	if float64(used) > float64(accounted) || float64(used) < 0.9*float64(accounted) {
		t.Errorf("%d bytes are used, accounted for are %d", used, accounted)
	}
	runtime.KeepAlive(table)
}

func TestTableKeepsWhatIsUsed(t *testing.T) {
	table := newTable[int](1 << 20)
	const popular = 200
	for i := range popular {
		table.set(entryOf(fmt.Sprint("popular", i), 100))
	}
	missing := 0
	for i := range 100_000 { // links that nobody asks for twice, ten of them to one visit of a popular one
		table.set(entryOf(fmt.Sprint("flood", i), 100))
		if key := fmt.Sprint("popular", i/10%popular); i%10 == 0 && table.get([]byte(key)) == nil {
			missing++
			table.set(entryOf(key, 100))
		}
	}
	checkTable(t, table)
	if missing > popular/10 {
		t.Errorf("%d of 10,000 visits of %d popular entries were in vain", missing, popular)
	}
}

func TestTableFindsWhatStaysWhileOthersChange(t *testing.T) {
	table := newTable[int](1 << 20)
	table.mask = 3 // so that all share few lists
	const staying = 16
	for i := range staying {
		table.set(entryOf(fmt.Sprint("stays", i), 0))
	}
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				if key := fmt.Sprint("stays", i%staying); table.get([]byte(key)) == nil {
					t.Errorf("%q is missing", key)
					return
				}
			}
		})
	}
	for range 100_000 {
		key := fmt.Sprint(rand.IntN(64))
		switch rand.IntN(3) {
		case 0:
			table.set(entryOf(key, 0))
		case 1:
			table.delete(key)
		default: // replacing one must not lose those behind it
			table.set(entryOf(fmt.Sprint("stays", rand.IntN(staying)), 0))
		}
	}
	close(done)
	readers.Wait()
}

// BenchmarkTable finds entries of a table that is full, any of them as often as another one.
func BenchmarkTable(b *testing.B) {
	for _, entries := range []int{1 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("entries=%d", entries), func(b *testing.B) {
			table := newTable[Target](int64(entries) * 256)
			for i := range entries {
				key := string(binary.BigEndian.AppendUint64(nil, uint64(i)))
				table.set(newEntry(Target{}, true, len(key), key))
			}
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				random := rand.New(rand.NewPCG(rand.Uint64(), 1))
				var key [8]byte
				for pb.Next() {
					binary.BigEndian.PutUint64(key[:], random.Uint64N(uint64(entries)))
					if table.get(key[:]) == nil {
						b.Error("an entry is missing")
					}
				}
			})
		})
	}
}
