package enrich

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync/atomic"

	"linkstream/schema/filewatch"

	"github.com/oschwald/maxminddb-golang/v2"
)

const (
	// maxFileBytes bounds a database. The largest databases of cities on offer have a tenth of it.
	maxFileBytes = 1 << 30
	// sampledNetworks is how many networks of a database checkCountries searches for a country.
	sampledNetworks = 10_000
	// maxMemoRecords bounds the records that a countryLookup memoizes. A database of countries has a few per country.
	maxMemoRecords = 1 << 12
)

// Countries maps networks to countries with a MaxMind database. Enrichers may share it.
type Countries struct {
	path     string
	log      *slog.Logger
	files    *filewatch.Files
	database atomic.Pointer[maxminddb.Reader] // nil without a file; replaced as a whole
}

// OpenCountries reads a database of countries, or of cities with their countries. With path "" every country is
// unknown.
func OpenCountries(path string, log *slog.Logger) (*Countries, error) {
	var paths []string
	if path != "" {
		paths = []string{path}
	}
	c := &Countries{path: path, log: log}
	c.files = filewatch.NewFiles(paths, c.load)
	if err := c.files.Load(); err != nil {
		return nil, fmt.Errorf("load countries: %w", err)
	}
	return c, nil
}

// Run loads the file again whenever it changes, until ctx is done. After an error the countries loaded last stay in
// use.
func (c *Countries) Run(ctx context.Context) {
	c.files.Follow(ctx, func(err error) { c.log.Error("cannot load countries, keeping those loaded last", "error", err) })
}

// load replaces the database by the file's current content. It reads the file and does not map it: a mapped file that
// is overwritten in place would change under its readers, and a truncated one would crash them.
func (c *Countries) load() error {
	data, err := readFile(c.path)
	if err != nil {
		return err
	}
	database, err := maxminddb.OpenBytes(data)
	if err == nil {
		err = checkCountries(database)
	}
	if err != nil {
		return fmt.Errorf("read %q: %w", c.path, err)
	}
	c.database.Store(database)
	c.log.Info("loaded countries", "file", c.path, "type", database.Metadata.DatabaseType,
		"built", database.Metadata.BuildTime().UTC())
	return nil
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFileBytes {
		return nil, fmt.Errorf("read %q: not a regular file of at most %d bytes", path, maxFileBytes)
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(file, data); err != nil {
		return nil, fmt.Errorf("read %q: %w", path, err)
	}
	return data, nil
}

// checkCountries returns an error if the database has no countries, like one of network operators.
func checkCountries(database *maxminddb.Reader) error {
	sampled := 0
	for network := range database.Networks() {
		if decodeCountry(network) != "" {
			return nil
		}
		if sampled++; sampled == sampledNetworks {
			break
		}
	}
	return errors.New("found no country.iso_code: not a database of countries, or damaged")
}

// countryLookup looks up countries in a database. It memoizes decoded records by their offset, because decoding a
// record costs more than finding it. It belongs to one goroutine.
type countryLookup struct {
	database *maxminddb.Reader
	codes    map[uintptr]string
}

func newCountryLookup(database *maxminddb.Reader) *countryLookup {
	return &countryLookup{database, make(map[uintptr]string)}
}

// country returns the country of the first address of a network, a /24 of IPv4 or a /48 of IPv6; "" if it is unknown.
func (l *countryLookup) country(network string) string {
	var ipv4 [net.IPv4len]byte
	var ipv6 [net.IPv6len]byte
	switch len(network) {
	case 24 / 8:
		copy(ipv4[:], network)
		return l.addr(netip.AddrFrom4(ipv4))
	case 48 / 8:
		copy(ipv6[:], network)
		return l.addr(netip.AddrFrom16(ipv6))
	}
	return ""
}

func (l *countryLookup) addr(addr netip.Addr) string {
	result := l.database.Lookup(addr)
	if !result.Found() {
		return ""
	}
	code, ok := l.codes[result.Offset()]
	if !ok {
		if len(l.codes) >= maxMemoRecords {
			clear(l.codes)
		}
		code = decodeCountry(result)
		l.codes[result.Offset()] = code
	}
	return code
}

// record is the part of a MaxMind record that decodeCountry reads.
type record struct {
	Country    country `maxminddb:"country"`
	Registered country `maxminddb:"registered_country"` // where the network's owner is registered
}

type country struct {
	ISOCode string `maxminddb:"iso_code"`
}

// decodeCountry returns the country of a record; "" if it has none or does not decode.
func decodeCountry(result maxminddb.Result) string {
	var r record
	if err := result.Decode(&r); err != nil {
		return ""
	}
	for _, code := range []string{r.Country.ISOCode, r.Registered.ISOCode} {
		if isCountryCode(code) {
			return code
		}
	}
	return ""
}

func isCountryCode(code string) bool {
	return len(code) == 2 && code[0] >= 'A' && code[0] <= 'Z' && code[1] >= 'A' && code[1] <= 'Z'
}
