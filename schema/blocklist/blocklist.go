// Package blocklist holds the hosts that no link may lead to. The api refuses links to them; the edge does not follow
// existing links to them.
package blocklist

import (
	"bufio"
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"linkstream/schema"
	"linkstream/schema/filewatch"
)

// List is a set of hosts read from files in the format of /etc/hosts. It keeps a seeded 64-bit hash of each: with a
// million hosts listed, about one in 10^12 other hosts is taken for a listed one. Its methods may be called
// concurrently.
type List struct {
	paths   []string
	log     *slog.Logger
	seed    maphash.Seed
	hosts   atomic.Pointer[[]uint64] // hashes of canonical hosts, ascending; replaced as a whole
	files   *filewatch.Files
	changed func() // see Run
}

// Open reads the files, whose paths are separated by commas. Without files nothing is blocked. A line holds an address
// and hosts, or hosts alone; # starts a comment. Entries that are not hosts, and hosts without a dot, are skipped: such
// files also name the machine they are made for.
func Open(files string, log *slog.Logger) (*List, error) {
	paths := strings.FieldsFunc(files, func(r rune) bool { return r == ',' })
	b := &List{paths: paths, log: log, seed: maphash.MakeSeed(), changed: func() {}}
	b.hosts.Store(&[]uint64{})
	b.files = filewatch.NewFiles(paths, b.read)
	if err := b.files.Load(); err != nil {
		return nil, fmt.Errorf("read blocklist: %w", err)
	}
	return b, nil
}

// Run reads the files again whenever one of them changes, and then calls changed, until ctx is done. While a file
// cannot be read, the list stays as it is.
func (b *List) Run(ctx context.Context, changed func()) {
	b.changed = changed
	b.files.Follow(ctx, func(err error) { b.log.Error("blocklist not reloaded, the old one stays in use", "error", err) })
}

// Blocks reports whether a host is listed, or is a subdomain of a listed one. A nil List blocks nothing.
func (b *List) Blocks(host schema.Host) bool {
	if b.IsEmpty() {
		return false
	}
	hosts := *b.hosts.Load()
	for parent, found := string(host), true; found; _, parent, found = strings.Cut(parent, ".") {
		if _, listed := slices.BinarySearch(hosts, maphash.String(b.seed, parent)); listed {
			return true
		}
	}
	return false
}

// IsEmpty reports whether nothing is blocked.
func (b *List) IsEmpty() bool { return b == nil || len(*b.hosts.Load()) == 0 }

// read replaces the list by the hosts in the files.
func (b *List) read() error {
	var hosts []uint64
	skipped := 0
	for _, path := range b.paths {
		n, err := readHosts(path, func(host schema.Host) { hosts = append(hosts, maphash.String(b.seed, string(host))) })
		if err != nil {
			return err
		}
		skipped += n
	}
	slices.Sort(hosts)
	hosts = slices.Clip(slices.Compact(hosts))
	b.hosts.Store(&hosts)
	b.log.Info("blocklist read", "files", len(b.paths), "hosts", len(hosts), "skipped", skipped)
	b.changed()
	return nil
}

func readHosts(path string, add func(schema.Host)) (skipped int, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	if skipped, err = parseHosts(file, add); err != nil {
		return 0, fmt.Errorf("read %q: %w", path, err)
	}
	return skipped, nil
}

// parseHosts calls add with each host of a file and returns the number of skipped entries.
func parseHosts(file io.Reader, add func(schema.Host)) (skipped int, err error) {
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		entries := strings.Fields(line)
		if len(entries) > 1 {
			if _, err := netip.ParseAddr(entries[0]); err == nil {
				entries = entries[1:]
			}
		}
		for _, entry := range entries {
			if host, err := schema.ParseHost(entry); err == nil && strings.ContainsAny(string(host), ".:") {
				add(host)
			} else {
				skipped++
			}
		}
	}
	return skipped, lines.Err()
}
