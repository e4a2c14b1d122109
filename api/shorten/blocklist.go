package shorten

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
	"time"
)

// pollInterval is how often a blocklist looks for changes of its files.
const pollInterval = 5 * time.Second

// Blocklist knows hosts that no link may lead to, from files in the format of /etc/hosts. It keeps eight bytes for each:
// a random hash, which with a million hosts takes one in 10^12 others for a listed one.
type Blocklist struct {
	paths []string
	log   *slog.Logger
	seed  maphash.Seed
	hosts atomic.Pointer[[]uint64] // hashes of canonical hosts, ascending; replaced as a whole

	// Of the goroutine that reads the files.
	stamps  []stamp
	failure string
}

// stamp tells one state of a file from another.
type stamp struct {
	modified time.Time
	size     int64
}

// OpenBlocklist reads the files; without any, nothing is blocked. A line has an address and hosts, or one host, and
// a # begins a comment. What is no host with at least one dot in it is passed over: such files name the machine
// itself, too.
func OpenBlocklist(paths []string, log *slog.Logger) (*Blocklist, error) {
	b := &Blocklist{paths: paths, log: log, seed: maphash.MakeSeed()}
	b.hosts.Store(&[]uint64{})
	return b, b.reload()
}

// Run reloads the files whenever one of them changes, until ctx is done. While one cannot be read, the list stays what
// it was.
func (b *Blocklist) Run(ctx context.Context) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		failure := ""
		if err := b.reload(); err != nil {
			failure = err.Error()
		}
		if failure != "" && failure != b.failure {
			b.log.Error("blocklist stays as it was", "error", failure)
		}
		b.failure = failure
	}
}

// blocks reports whether a canonical host is listed, or is a subdomain of a listed one.
func (b *Blocklist) blocks(host string) bool {
	hosts := *b.hosts.Load()
	for parent, found := host, true; found; _, parent, found = strings.Cut(parent, ".") {
		if _, listed := slices.BinarySearch(hosts, maphash.String(b.seed, parent)); listed {
			return true
		}
	}
	return false
}

// reload reads all files if one has changed since they were last read.
func (b *Blocklist) reload() error {
	// The stamps are taken first: what changes while the files are read is read again.
	stamps := make([]stamp, len(b.paths))
	for i, path := range b.paths {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("read blocklist: %w", err)
		}
		stamps[i] = stamp{info.ModTime(), info.Size()}
	}
	if slices.Equal(stamps, b.stamps) {
		return nil
	}
	var hosts []uint64
	passed := 0
	for _, path := range b.paths {
		n, err := readHosts(path, func(host string) { hosts = append(hosts, maphash.String(b.seed, host)) })
		if err != nil {
			return fmt.Errorf("read blocklist: %w", err)
		}
		passed += n
	}
	slices.Sort(hosts)
	hosts = slices.Clip(slices.Compact(hosts))
	b.hosts.Store(&hosts)
	b.stamps = stamps
	b.log.Info("blocklist read", "files", len(b.paths), "hosts", len(hosts), "entries passed over", passed)
	return nil
}

func readHosts(path string, add func(host string)) (passed int, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	if passed, err = parseHosts(file, add); err != nil {
		return 0, fmt.Errorf("read %q: %w", path, err)
	}
	return passed, nil
}

// parseHosts calls add with each host of a file in its canonical form, and returns how many entries it passed over.
func parseHosts(file io.Reader, add func(host string)) (passed int, err error) {
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
			if host, ok := canonicalHost(entry); ok && strings.ContainsAny(host, ".:") {
				add(host)
			} else {
				passed++
			}
		}
	}
	return passed, lines.Err()
}
