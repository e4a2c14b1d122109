# Needs Go, make and git; make test needs a C compiler as well, for the race detector.

PROGRAMS   = $(patsubst %main.go,./%,$(wildcard */main.go deploy/*/main.go))
BENCHMARKS = $(sort $(dir $(shell grep -rl --include='*_test.go' '^func Benchmark' .)))
FUZZTIME   = 5s
# The race detector leaves out SQLite, which is translated C under locks of its own and gets five times slower, the C library and
# the allocator below it, and argon2. Only a package may be left out whose generic types no other package instantiates: the linker
# may choose its copies of their methods for all. The C library has those of a directory that is read, which one goroutine does.
# Debug information, which go test does not link, takes an eighth of the compilers' CPU time, and inlining a fifth: only the standard
# library and the project's own packages, which tests execute most, are worth it, and those that the race detector leaves out.
UNCHECKED  = modernc.org/sqlite/lib modernc.org/libc modernc.org/memory golang.org/x/crypto/argon2
LEAN       = '-gcflags=all=-dwarf=false -l' -gcflags=std=-dwarf=false -gcflags=linkstream/...=-dwarf=false
RACE       = -race $(LEAN) $(UNCHECKED:%='-gcflags=%=-race=false -dwarf=false')
# Tests often wait, so more packages than there are CPUs are tested at once; fewer by make test-deploy, where programs run under load.
CPUS       = $$(getconf _NPROCESSORS_ONLN)
PACKAGES   = -p $$(( $(CPUS) + 1 ))
# Compilers and linters live briefly: collecting garbage less often saves more than a sixth of their CPU time. Where no program runs but they,
# the variables themselves save a process per tool. The limit bounds the compiler of SQLite.
RARE_GC    = GOGC=1600 GOMEMLIMIT=2GiB
TOOLS      = -toolexec 'env $(RARE_GC)'
# The same for what tests build.
GOFLAGS_TOOLS = GOFLAGS="$$(go env GOFLAGS) '-toolexec=env $(RARE_GC)'"
# Programs that make test builds, among them those under test and staticcheck, have no debug information. They inline more than tests:
# the libraries of an edge, whose allocations are tested, and staticcheck's own.
INLINED    = $(UNCHECKED) github.com/valyala/... github.com/dgraph-io/... honnef.co/... golang.org/x/tools/...
GOFLAGS_TEST = GOFLAGS="$$(go env GOFLAGS) $(LEAN) $(INLINED:%=-gcflags=%=-dwarf=false) -ldflags=-w"
# Packages that test the programs with tools of those who use or run them, with other releases, or on clusters, which takes
# minutes: for make test-deploy. So are the installation and the failures of engines, tests of programs under load while engines
# fail or are restored, and that of the README's pictures.
DEPLOYED   = /deploy/(acme|apiclients|image|kubernetes|lighthouse|manual|prometheus|proxy|release|shards|systemd|testengines(/.*)?|upgrade)$$
FAULTS     = ^Test(Faults|RestoredEngines|DashboardPictures)$$
# Tests that take much CPU time and have a sibling in make test, see CONTRIBUTING.md: they and those of bench are for make test-deploy,
# too, but with the race detector. So are those of the simulation, which resumes one task at a time, and which make test runs without.
SLOW       = ^TestClickStore$$/^HTTP$$|^TestClickStore$$/^native_protocol$$/^(queries_of_)?reports$$|^TestDashboardLinks$$/^embedded$$|^Test(KilledServer|KilledCompaction|StopUnderLoad|DashboardAccess|DashboardAccessibility|DashboardDomains|DashboardHostileTexts|DashboardSessions|DashboardWithoutScript)$$
SLOW_IN    = ./schema/clickhouse ./deploy/e2e
# Lighthouse measures, so it has the machine to itself.
QUIET      = /deploy/lighthouse$$
# The packages of make test.
TESTED     = $$(go list ./... | grep -vE '$(DEPLOYED)|/bench$$|/deploy/simulation$$')
# Packages whose tests of allocations run without the race detector, under which pools forget: those that call testkit.NeedsPools.
POOLED     = ./edge/redirect ./edge/resolve ./edge/eventloop
# Packages of the standard library, with nearly all others below them, which are compiled while modules are downloaded.
STANDARD   = net/http/httptest html/template database/sql encoding/xml os/exec testing/fstest testing/synctest
# What make test builds without the race detector.
PLAIN      = ./deploy/simulation ./deploy/standalone ./edge ./ingest ./api $(POOLED)
# The packages whose tests take longest start first, so that the others run beside them.
LONGEST    = ./deploy/e2e ./schema/clickhouse ./api/dashboard ./api/rest ./edge/eventloop ./schema/sqlite ./schema/postgres \
	./schema/stream ./edge/resolve ./api/ratelimit ./api/auth ./schema/service
LONG_QUICK = ./api/dashboard ./edge/eventloop ./edge/edgeservice ./api/rest ./schema/sqlite ./edge/resolve ./edge/certificate ./deploy/simulation \
	./deploy/standalone ./ingest/ingestservice
# Packages whose tests start engines, browsers or whole programs: for make test, not for make quick.
ENGINES    = /api/apiservice$$|/bench$$|/deploy/e2e$$|/schema/(clickhouse|postgres|stream)$$|/ingest/worker$$

.DEFAULT_GOAL := help
.PHONY: help run up build check lint quick test compile beside tests test-deploy slow bench fuzz screenshots release

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## run the whole service on this machine; flags as in ARGS="-api.listen 127.0.0.1:8181"
	go run ./deploy/standalone $(ARGS)

up: build ## run the three services on real engines of this machine; flags in ARGS
	./build/up $(ARGS)

build: ## build the programs into ./build
	go build -o build/ $(PROGRAMS)

check: lint ## check format, code, imports and go.mod
	go vet $(TOOLS) ./...
	go test -run '^Test(GoMod|Import|Layout)' ./deploy/e2e # who may import whom, sizes of files, direct requirements

lint:
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "not formatted by gofmt:"; echo "$$unformatted"; exit 1; }
	go build $(TOOLS) -o build/ honnef.co/go/tools/cmd/staticcheck
	CGO_ENABLED=1 GOGC=off GOMEMLIMIT=2GiB GOFLAGS="$$(go env GOFLAGS) '-toolexec=env $(RARE_GC)' $(RACE)" \
		build/staticcheck ./... # which reads what make test has compiled

quick: ## vet, then test what needs no engine and no browser, with fewer simulations; names what it leaves out
	go vet $(TOOLS) ./...
	@all=$$(go list ./...) && echo "left out, see make test:" && echo "$$all" | grep -E '$(ENGINES)|$(DEPLOYED)' | sed 's/^/  /' && \
		go test -short -vet=off $(TOOLS) -p $$(( 4 * $(CPUS) )) $(LONG_QUICK) $$(echo "$$all" | grep -vE '$(ENGINES)|$(DEPLOYED)')

test: ## check what check does, and test on embedded engines and on real ones, which it names; all but what test-deploy does
	@mkdir -p build && rm -f build/compiled
	@$(GOFLAGS_TEST) $(MAKE) --no-print-directory -j 2 beside tests

# Tests, and the programs that they start, are compiled while engines are installed and started. Tests begin when both are done. The
# go command that has downloaded the modules waits for the one that compiles: two would compile the same packages.
compile:
	@CGO_ENABLED=1 $(RARE_GC) go list $(RACE) -export -deps $(STANDARD) >/dev/null & go list -deps -test $(TESTED) >/dev/null; wait; \
		CGO_ENABLED=1 $(RARE_GC) go list $(RACE) -export -deps -test $(TESTED) >/dev/null; $(RARE_GC) go list -export -deps -test $(PLAIN) >/dev/null; \
		touch build/compiled

# The tests often wait for programs: this runs meanwhile. All packages are vetted as compiled for the race detector: vet would read all
# dependencies a second time without it.
beside: compile
	go test -vet=off $(TOOLS) ./deploy/simulation
	go test -vet=off $(TOOLS) -run 'Allocat|Popular' -v $(POOLED)
	CGO_ENABLED=1 go test -vet=all $(TOOLS) $(RACE) -run '^$$' ./deploy/simulation
	@$(MAKE) --no-print-directory lint

tests:
	CGO_ENABLED=1 go run $(TOOLS) ./deploy/testengines/engines sh -c 'until test -e build/compiled; do sleep 1; done; exec "$$@"' sh \
		go test -vet=all $(TOOLS) $(RACE) -p $$(( $(CPUS) + 3 )) -timeout 20m -skip '$(FAULTS)|$(SLOW)' $(LONGEST) $(TESTED)

test-deploy: ## test what takes long, make engines fail under load, get certificates, test generated clients, upgrade the last release, count on shards, and more; installs tools first
	@$(GOFLAGS_TOOLS) $(MAKE) --no-print-directory slow
	go run ./deploy/testengines/engines go test -vet=off -count 1 -timeout 20m -run '$(FAULTS)' ./deploy/e2e
	go test -vet=all $(PACKAGES) -count 1 -timeout 30m $$(go list ./... | grep -E '$(DEPLOYED)' | grep -vE '$(QUIET)')
	go test -vet=all -count 1 -timeout 30m $$(go list ./... | grep -E '$(QUIET)')

slow:
	CGO_ENABLED=1 go run ./deploy/testengines/engines go test -vet=off $(RACE) -count 1 -timeout 20m -run '$(SLOW)' $(SLOW_IN)
	CGO_ENABLED=1 go test -vet=all $(RACE) -count 1 -timeout 20m ./bench ./deploy/simulation

bench: ## run the benchmarks
	go test -run '^$$' -bench . $(BENCHMARKS)

fuzz: ## run each fuzz target for FUZZTIME (5s)
	@for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -r dirname | sort -u); do \
		for target in $$(go test -list '^Fuzz' $$dir | grep '^Fuzz'); do \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$dir || exit 1; \
		done; \
	done

screenshots: ## take the README's pictures of the dashboard anew; needs a Chromium, or apt to get one
	go test -count 1 -run '^TestDashboardPictures$$' ./deploy/e2e -pictures $(CURDIR)/api/dashboard/screenshots

release: ## build release VERSION=1.2.3 into build/release, the same bytes each time; KEY=FILE signs it
	go run ./deploy/release $(if $(KEY),-release.key $(KEY)) $(ARGS) $(VERSION)
