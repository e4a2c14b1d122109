// Package enrichtest writes MaxMind databases for tests.
package enrichtest

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
)

// Record is the record of a network in a MaxMind database.
type Record = mmdbtype.Map

// In returns the record of a network in a country.
func In(code string) Record { return Record{"country": Record{"iso_code": mmdbtype.String(code)}} }

// WriteCountries writes a MaxMind database to path, with a record per network in CIDR notation. It renames a complete
// file to path, as MaxMind's updater does.
func WriteCountries(t testing.TB, path string, networks map[string]Record) {
	t.Helper()
	tree, err := mmdbwriter.New(mmdbwriter.Options{
		DatabaseType: "Test-Country", RecordSize: 24, IncludeReservedNetworks: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	for cidr, record := range networks {
		_, network, err := net.ParseCIDR(cidr)
		if err != nil {
			t.Fatal(err)
		}
		if err := tree.Insert(network, record); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.CreateTemp(filepath.Dir(path), "countries")
	if err != nil {
		t.Fatal(err)
	}
	_, err = tree.WriteTo(file)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		t.Fatal(err)
	}
}
