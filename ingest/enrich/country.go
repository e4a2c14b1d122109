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
	// maxCountriesBytes bounds a file of countries. The largest that are on offer, which know cities as well, have a
	// tenth of it.
	maxCountriesBytes = 1 << 30
	// sampledNetworks is how many of a file's networks are asked for a country before it counts as one that has none.
	sampledNetworks = 10_000
)

// Countries knows which networks are in which country, from a MaxMind file. Any number of enrichers may use it.
type Countries struct {
	path     string
	log      *slog.Logger
	files    *filewatch.Files
	database atomic.Pointer[maxminddb.Reader] // nil without a file; replaced as a whole
}

// OpenCountries reads a file of countries, or of cities with their countries. Without a path no country is known.
func OpenCountries(path string, log *slog.Logger) (*Countries, error) {
	var paths []string
	if path != "" {
		paths = []string{path}
	}
	c := &Countries{path: path, log: log}
	c.files = filewatch.NewFiles(paths, c.read)
	if err := c.files.Load(); err != nil {
		return nil, fmt.Errorf("read countries: %w", err)
	}
	return c, nil
}

// Run reads the file again whenever it changes, until ctx is done. While it cannot be read, the countries stay what
// they were.
func (c *Countries) Run(ctx context.Context) {
	c.files.Follow(ctx, func(err error) { c.log.Error("countries stay as they were", "error", err) })
}

// read replaces the database by what the file says now. It is held in memory and not mapped: a file that is written
// over in its place, not renamed to it, would change under those who read it, or end the process where it is shorter.
func (c *Countries) read() error {
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
	c.log.Info("countries read", "file", c.path, "type", database.Metadata.DatabaseType,
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
	if !info.Mode().IsRegular() || info.Size() > maxCountriesBytes {
		return nil, fmt.Errorf("read %q: it is no file of at most %d bytes", path, maxCountriesBytes)
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(file, data); err != nil {
		return nil, fmt.Errorf("read %q: %w", path, err)
	}
	return data, nil
}

// checkCountries tells a file that knows countries from one of something else, such as providers.
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
	return errors.New("it has no country.iso_code: it is no file of countries, or damaged")
}

// rememberedRecords is how many records of a file an atlas remembers. Files of countries have a few for each.
const rememberedRecords = 1 << 12

// atlas finds countries in a database. It decodes a record once and knows it by its offset after that, as to decode one
// costs more than to find it. It belongs to one goroutine.
type atlas struct {
	database *maxminddb.Reader
	codes    map[uintptr]string
}

func newAtlas(database *maxminddb.Reader) *atlas { return &atlas{database, make(map[uintptr]string)} }

// country returns the country of the first address of a network, which is /24 of IPv4 or /48 of IPv6. "" if it is not
// known.
func (a *atlas) country(network string) string {
	var ipv4 [net.IPv4len]byte
	var ipv6 [net.IPv6len]byte
	switch len(network) {
	case 24 / 8:
		copy(ipv4[:], network)
		return a.find(netip.AddrFrom4(ipv4))
	case 48 / 8:
		copy(ipv6[:], network)
		return a.find(netip.AddrFrom16(ipv6))
	}
	return ""
}

func (a *atlas) find(addr netip.Addr) string {
	result := a.database.Lookup(addr)
	if !result.Found() {
		return ""
	}
	code, ok := a.codes[result.Offset()]
	if !ok {
		if len(a.codes) >= rememberedRecords {
			clear(a.codes)
		}
		code = decodeCountry(result)
		a.codes[result.Offset()] = code
	}
	return code
}

// record is what is wanted of a record in a MaxMind file.
type record struct {
	Country    country `maxminddb:"country"`
	Registered country `maxminddb:"registered_country"` // of the network's owner
}

type country struct {
	ISOCode string `maxminddb:"iso_code"`
}

// decodeCountry returns the country of a record. "" if it cannot be read.
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
