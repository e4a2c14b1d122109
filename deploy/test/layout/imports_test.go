package layout_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// Imports point one way: deploy and bench import services, services import schema/*, and schema/* imports schema.
// importViolations checks what each package imports itself, linkViolations what each program links through others.
// External tests may import anything.

const module = "linkstream"

var (
	services = []string{"edge", "api", "ingest"}
	stores   = []string{"schema/linkstore", "schema/sqlite", "schema/clickhouse"}
	drivers  = "schema/linkstore"          // below it, packages are named after engines, as other stores are
	top      = []string{"deploy", "bench"} // these may import services and stores
	clients  = []string{"api/client", "api/cli", "api/csvfile"}
)

// schemaModules lists what schema itself imports besides the standard library.
var schemaModules = []string{"google.golang.org/protobuf", "golang.org/x/net/idna", "golang.org/x/text/cases",
	"golang.org/x/text/unicode/norm"}

const onlySchemaModules = "schema imports the standard library, protobuf, and idna, cases and norm of Unicode only"

// schemaImports lists what packages below schema/ import of this module, besides schema and their own subpackages.
// In particular, the stores and schema/stream never import each other.
var schemaImports = map[string][]string{
	"schema/linkstore":  {"schema/groupcommit", "schema/migration", "schema/span", "schema/sqlitefile", "schema/turns"},
	"schema/sqlitefile": {"schema/filelock", "schema/migration"},
	"schema/sqlite":     {"schema/namebound", "schema/sqlitefile"},
	"schema/sqlitetest": {"schema/linkstore", "schema/linkstore/sqlite", "schema/sqlite", "schema/sqlitefile"},
	"schema/clickhouse": {"schema/migration", "schema/namebound", "schema/span"},
	"schema/blocklist":  {"schema/filewatch"},
	"schema/enrich":     {"schema/filewatch"},
	"schema/stream":     {"schema/span"},
	"schema/span":       {},
	"schema/tracing":    {"schema/service", "schema/span"},
	"schema/service":    {},
	"schema/storetest":  {"schema/linkstore"},
}

// notLinked lists what a program must not link, whichever package imports it.
var notLinked = map[string][]string{
	"edge": {"linkstream/api", "linkstream/ingest", "linkstream/deploy", "linkstream/bench", "linkstream/schema/sqlite",
		"linkstream/schema/linkstore/sqlite", "linkstream/schema/clickhouse", "linkstream/schema/tracing", argon2,
		clickhouseDriver, sqliteDriver, testBroker, router, telemetry, testingPackage},
	"api": {"linkstream/edge", "linkstream/ingest/ingestservice", "linkstream/ingest/verify", "linkstream/deploy",
		"linkstream/bench", "linkstream/schema/sqlite", "linkstream/schema/linkstore/sqlite", sqliteDriver, testBroker,
		testingPackage},
	"api/cli/linkstream": {"linkstream/schema", testingPackage},
	"ingest": {"linkstream/api", "linkstream/edge", "linkstream/deploy", "linkstream/bench", "linkstream/schema/sqlite",
		"linkstream/schema/linkstore", argon2, postgresDriver, sqliteDriver, testBroker, router, ristretto, testingPackage},
	"deploy/standalone": {"linkstream/deploy/tools/engines/testengines", "linkstream/bench",
		"linkstream/schema/linkstore/postgres", "linkstream/schema/clickhouse", postgresDriver, clickhouseDriver, testBroker,
		testingPackage},
	"deploy/migrate-to": {"linkstream/api", "linkstream/deploy/tools/engines/testengines", "linkstream/bench", argon2,
		router, testBroker, testingPackage},
	"deploy/tools/up": {"linkstream/bench", "linkstream/edge", "linkstream/ingest", "linkstream/schema/sqlite",
		"linkstream/schema/linkstore/sqlite", sqliteDriver,
		testingPackage},
}

const (
	argon2           = "golang.org/x/crypto/argon2"
	postgresDriver   = "github.com/jackc/pgx/v5"
	clickhouseDriver = "github.com/ClickHouse/clickhouse-go/v2"
	sqliteDriver     = "modernc.org/sqlite"
	testBroker       = "github.com/twmb/franz-go"
	router           = "github.com/fasthttp/router"
	telemetry        = "go.opentelemetry.io/otel/sdk" // the API alone records nothing
	ristretto        = "github.com/dgraph-io/ristretto/v2"
	testHelpers      = "schema/testkit" // it imports package testing, so no program may link it
	testingPackage   = "testing"
)

func TestImports(t *testing.T) {
	packages := listPackages(t, "./...")
	t.Run("packages import only what they may", func(t *testing.T) {
		if len(packages) < 10 {
			t.Fatalf("go list found only %d packages", len(packages))
		}
		for _, p := range packages {
			for _, v := range importViolations(p) {
				t.Error(v)
			}
		}
	})
	t.Run("packages are named after their folders, each differently", func(t *testing.T) {
		for _, v := range nameViolations(packages) {
			t.Error(v)
		}
	})
	for program := range notLinked {
		t.Run(program+" links only what it needs", func(t *testing.T) {
			linked := listPackages(t, "-deps", "./"+program) // the program is the last one
			if last := linked[len(linked)-1]; last.Name != "main" || len(linked) < 10 {
				t.Fatalf("%s is package %q with %d dependencies, want a program", program, last.Name, len(linked))
			}
			for _, v := range linkViolations(program, linked) {
				t.Error(v)
			}
		})
	}
}

// goPackage is what go list reports about a package.
type goPackage struct {
	ImportPath  string
	Name        string
	Imports     []string
	TestImports []string // of tests inside the package
}

func listPackages(t *testing.T, args ...string) (packages []goPackage) {
	t.Helper()
	args = append([]string{"list", "-json=ImportPath,Name,Imports,TestImports"}, args...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = moduleRoot
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %q: %v", args, err)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// importViolations returns the imports that a package must not have.
func importViolations(p goPackage) (violations []string) {
	from := strings.TrimPrefix(p.ImportPath, module+"/")
	for i, imported := range slices.Concat(p.Imports, p.TestImports) {
		rule := ""
		if to, ours := strings.CutPrefix(imported, module+"/"); ours {
			rule = brokenRule(from, to, p.Name == "main")
		} else if from == "schema" && i < len(p.Imports) && !standard(imported) && root(imported, schemaModules) == "" {
			rule = onlySchemaModules
		}
		if rule != "" {
			violations = append(violations, fmt.Sprintf("%s imports %s: %s", p.ImportPath, imported, rule))
		}
	}
	return violations
}

// brokenRule returns the rule that forbids a package to import another package of this module, "" if none does.
func brokenRule(from, to string, main bool) string {
	switch {
	case root(from, clients) != "":
		if root(to, clients) == "" {
			return "api/client, api/cli and api/csvfile import each other only"
		}
		return ""
	case within(to, "bench") && !within(from, "bench"):
		return "only bench imports bench"
	case root(from, top) != "":
		return ""
	case within(to, "deploy"):
		return "only deploy and bench import deploy"
	case within(from, "schema") && root(to, services) != "":
		return "schema/* imports no service"
	case from == "api" && main && to == "ingest/worker": // it reads the topic for webhooks: see decision 14
		return ""
	case root(to, services) != root(from, services) && root(to, services) != "":
		return "services never import each other"
	case root(from, services) != "" && root(to, stores) != "" && !main:
		return "only mains, deploy, bench and external tests import a store"
	case from == "schema":
		return onlySchemaModules
	case from == drivers && within(to, drivers):
		return "schema/linkstore imports no driver"
	case within(from, "schema") && to != "schema":
		own := path.Join("schema", strings.Split(from, "/")[1])
		if !within(to, own) && to != testHelpers && !slices.Contains(schemaImports[own], to) {
			return fmt.Sprintf("%s imports schema and %q only", own, schemaImports[own])
		}
	}
	return ""
}

// linkViolations returns the imports by which a program links what it must not.
func linkViolations(program string, linked []goPackage) (violations []string) {
	for _, p := range linked {
		if root(p.ImportPath, notLinked[program]) != "" {
			continue // whoever imports it is reported
		}
		for _, imported := range p.Imports {
			if root(imported, notLinked[program]) != "" {
				violations = append(violations,
					fmt.Sprintf("%s must not link %s, which %s imports", program, imported, p.ImportPath))
			}
		}
	}
	return violations
}

// nameViolations returns the packages whose names say nothing, differ from their folders' names or occur twice.
func nameViolations(packages []goPackage) (violations []string) {
	folders := map[string]string{} // by the name of the package
	for _, p := range packages {
		if p.Name == "main" || strings.HasSuffix(p.Name, "_test") || p.Name == "" { // a folder of tests has no package
			continue
		}
		if slices.Contains(badNames, p.Name) {
			violations = append(violations, fmt.Sprintf("%s: %q does not name the package's role", p.ImportPath, p.Name))
		}
		if p.Name != path.Base(p.ImportPath) {
			violations = append(violations, fmt.Sprintf("%s: package %s is named unlike its folder", p.ImportPath, p.Name))
		}
		if other := folders[p.Name]; other != "" && !within(p.ImportPath, module+"/"+drivers) &&
			!within(other, module+"/"+drivers) {
			violations = append(violations, fmt.Sprintf("%s: %s is a package %s, too", p.ImportPath, other, p.Name))
		}
		folders[p.Name] = p.ImportPath
	}
	return violations
}

// root returns the folder that holds the package, "" if none of them does.
func root(pkg string, folders []string) string {
	for _, folder := range folders {
		if within(pkg, folder) {
			return folder
		}
	}
	return ""
}

func within(pkg, folder string) bool { return pkg == folder || strings.HasPrefix(pkg, folder+"/") }

// standard reports whether a package belongs to the standard library, whose paths do not begin with a host name.
func standard(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	return !strings.Contains(first, ".")
}
