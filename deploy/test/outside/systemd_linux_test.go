//go:build deploy

package outside_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"linkstream/schema/testkit"
)

// The tests of the Debian package install it in a copy of this machine where systemd is the first process, so that the
// sandbox, the sockets and the scripts of the package are at work.

const exposure = "15" // systemd-analyze security: 1.5

var unitPrograms = []string{"standalone", "edge", "api", "ingest"}

// buildPackages builds packages of two versions, which have the same programs, and returns their names.
func buildPackages(t *testing.T, dir string) (first, second string) {
	t.Helper()
	const build = `../../systemd/build-deb 1.0.0 $1 "$2"
		dpkg-deb --extract "$2/linkstream_1.0.0_$1.deb" "$3/files"
		mkdir "$3/programs"
		mv "$3/files/usr/bin/linkstream" "$3/programs"
		for program in "$3"/files/usr/bin/*; do mv "$program" "$3/programs/${program##*/linkstream-}"; done
		../../systemd/build-deb 1.1.0 $1 "$2" "$3/programs"`
	run(t, "sh", "-ec", build, "build", runtime.GOARCH, dir, t.TempDir())
	return "/packages/linkstream_1.0.0_" + runtime.GOARCH + ".deb", "/packages/linkstream_1.1.0_" + runtime.GOARCH + ".deb"
}

func TestDebianPackage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, second := buildPackages(t, dir)
	authority := testkit.NewAuthority(t)
	cert, key := authority.Files(t, t.TempDir(), "sho.rt")
	testkit.Must(t, errors.Join(os.Rename(cert, filepath.Join(dir, "tls.crt")),
		os.Rename(key, filepath.Join(dir, "tls.key"))))
	m := bootMachine(t, []string{"lintian"}, map[string]string{"/packages": dir})
	install := func(t *testing.T, deb string) { m.Run(t, `dpkg --install "$1"`, deb) }
	t.Run("lintian finds nothing", func(t *testing.T) {
		out := m.Run(t, `lintian --allow-root --fail-on error,warning,info --info "$1" 2>&1`, first)
		testkit.Equal(t, "output", out, "")
	})
	install(t, first)
	t.Run("is installed with its user and folders", func(t *testing.T) {
		out := m.Run(t,
			`getent passwd linkstream | cut -d: -f6-
			stat -c '%n %a %U:%G' /etc/linkstream/edge.env /var/lib/linkstream /var/lib/linkstream/*
			for program in standalone edge api ingest migrate-to; do linkstream-$program -version; done
			linkstream --version; zcat /usr/share/man/man1/linkstream.1.gz | grep -c '^.B LINKSTREAM_TOKEN$'
			bash -c '. /usr/share/bash-completion/completions/linkstream; complete -p linkstream'`)
		lines := regexp.MustCompile(`^/var/lib/linkstream:\S+nologin
/etc/linkstream/edge.env 644 root:root
/var/lib/linkstream 755 root:root
/var/lib/linkstream/edge 700 linkstream:linkstream
/var/lib/linkstream/standalone 700 linkstream:linkstream
standalone 1.0.0 go\S+ linux/\w+
edge 1.0.0 go\S+ linux/\w+
api 1.0.0 go\S+ linux/\w+
ingest 1.0.0 go\S+ linux/\w+
migrate-to 1.0.0 go\S+ linux/\w+
linkstream 1.0.0 go\S+ linux/\w+
1
complete .*linkstream
$`)
		if !lines.MatchString(out) {
			t.Errorf("printed\n%s", out)
		}
	})
	t.Run("its units are valid", func(t *testing.T) {
		out := m.Run(t, `touch /etc/linkstream/postgres.dsn /etc/linkstream/clickhouse.dsn
			systemd-analyze verify --man=no /usr/lib/systemd/system/linkstream-*.service \
				/usr/lib/systemd/system/linkstream-*.socket 2>&1 |
				grep linkstream || true`)
		testkit.Equal(t, "complaints", out, "")
	})
	for _, program := range unitPrograms {
		t.Run("the exposure of "+program+" is low", func(t *testing.T) {
			out, err := m.Try(t, `systemd-analyze security --no-pager --offline=true --threshold=$1 linkstream-$2.service`,
				exposure, program)
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	s := startInstalled(t, m, authority.Roots)
	t.Run("restarts and upgrades refuse no connection", func(t *testing.T) {
		testRestarts(t, s, func() { install(t, second) }, func() { install(t, first) })
	})
	t.Run("a stop lasts while visitors come", func(t *testing.T) { testStop(t, s) })
	t.Run("an address that is taken or has no effect is an error", func(t *testing.T) { testAddresses(t, s) })
	t.Run("data and settings survive",
		func(t *testing.T) { testData(t, s, func() { install(t, second) }, func() { install(t, first) }) })
}

// testData upgrades, removes, purges and installs the package, and compares the data each time.
func testData(t *testing.T, s *systemService, upgrade, install func()) {
	s.click(t)
	s.m.Run(t, `systemctl stop linkstream-standalone`)
	const sums = `cd /var/lib/linkstream && find . -type f -exec sha256sum {} + | sort; stat -c '%n %a %u' standalone ` +
		`standalone/spool`
	before := s.m.Run(t, sums)
	if !strings.Contains(before, "/links.db") || !strings.Contains(before, "standalone/spool 700 ") {
		t.Fatalf("data:\n%s", before)
	}
	s.m.Run(t, `echo LINKSTREAM_LOG_LEVEL=debug >>/etc/linkstream/standalone.env`)
	for _, step := range []struct {
		name, settings string
		do             func()
	}{
		{"upgrade", "1", upgrade},
		{"remove", "1", func() { s.m.Run(t, `dpkg --remove linkstream; test ! -e /usr/bin/linkstream-edge`) }},
		{"purge", "0", func() {
			s.m.Run(t, `dpkg --purge linkstream; test ! -e /etc/linkstream/edge.env; test -z "$(find /etc/systemd/system -name `+
				`'linkstream*' ! -type d)"`)
		}},
		{"install again", "0", install},
	} {
		step.do()
		testkit.Equal(t, "data after "+step.name, s.m.Run(t, sums), before)
		kept := s.m.Run(t, `grep -cs LOG_LEVEL=debug /etc/linkstream/standalone.env || test $? -gt 0`)
		testkit.Equal(t, "kept settings after "+step.name, max(strings.TrimSpace(kept), "0"), step.settings)
	}
	s.m.Run(t, `echo LINKSTREAM_EDGE_URL=https://sho.rt >>/etc/linkstream/standalone.env`)
	s.start(t)
	s.click(t)
}
