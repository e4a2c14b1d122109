# make run, build and test need Go and make alone. CONTRIBUTING.md says what the other targets need.

TAGS = engines deploy nightly
FUZZTIME = 5s

.DEFAULT_GOAL := help
.PHONY: help run up build test check test-engines test-deploy nightly fuzz bench screenshots release

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## run the whole service on this machine; flags as in ARGS="-api.listen 127.0.0.1:8181"
	go run ./deploy/standalone $(ARGS)

up: build ## run the three services on real engines of this machine; flags in ARGS
	./build/up $(ARGS)

build: ## build the programs into ./build
	go build -o build/ ./...

test: ## vet and test, on embedded engines
	go vet ./...
	go test ./...

check: ## check format, code with every build tag, and the rules of deploy/test/layout
	@files=$$(gofmt -l .); test -z "$$files" || { echo "not formatted by gofmt:"; echo "$$files"; exit 1; }
	go vet ./...
	go vet -tags '$(TAGS)' ./...
	go run honnef.co/go/tools/cmd/staticcheck -tags '$(TAGS)' ./...
	go test ./deploy/test/layout

test-engines: ## test with the race detector, on Postgres, Kafka, ClickHouse and in Chromium, which it finds or installs
	go run ./deploy/tools/engines go test -race -tags engines -timeout 40m ./...

test-deploy: ## test images, manifests, the Debian package, the manual, alerts, certificates, upgrades
	go test -count 1 -tags deploy -timeout 60m ./deploy/test/outside ./deploy/test/upgrade ./deploy/tools/release

nightly: ## test what takes hours: 3,000 seeds, faults, all of bench, all that ships, fuzzing
	go test -count 1 -tags nightly -timeout 6h ./deploy/test/simulation -seeds 3000
	go run ./deploy/tools/engines go test -count 1 -tags 'engines nightly' -timeout 3h ./bench ./deploy/test/e2e
	go test -count 1 -tags 'deploy nightly' -p 1 -timeout 3h ./deploy/test/outside ./deploy/test/upgrade
	$(MAKE) fuzz FUZZTIME=1m

fuzz: ## run each fuzz target for FUZZTIME (5s)
	@for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -r dirname | sort -u); do \
		for target in $$(go test -list '^Fuzz' $$dir | grep '^Fuzz'); do \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$dir || exit 1; \
		done; \
	done

bench: ## run the benchmarks
	go test -run '^$$' -bench . ./...

screenshots: ## take the README's pictures of the dashboard; needs a Chromium, or apt to get one
	go test -count 1 -tags 'engines nightly' -run '^TestDashboardPictures$$' ./deploy/test/e2e \
		-pictures $(CURDIR)/api/dashboard/screenshots

release: ## build release VERSION=1.2.3 into build/release, the same bytes each time; KEY=FILE signs it
	go run ./deploy/tools/release $(if $(KEY),-release.key $(KEY)) $(ARGS) $(VERSION)
