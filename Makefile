# Needs Go, make and git; make test needs a C compiler as well, for the race detector.

# What make test-deploy tests: it needs root, systemd, Java, Node or ten minutes. make test runs all other packages.
DEPLOYED = /deploy/test/(outside|upgrade)
FUZZTIME = 5s

.DEFAULT_GOAL := help
.PHONY: help run up build check quick test test-deploy bench fuzz screenshots release

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## run the whole service on this machine; flags as in ARGS="-api.listen 127.0.0.1:8181"
	go run ./deploy/standalone $(ARGS)

up: build ## run the three services on real engines of this machine; flags in ARGS
	./build/up $(ARGS)

build: ## build the programs into ./build
	go build -o build/ ./...

check: ## check format, code, imports and go.mod
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "not formatted by gofmt:"; echo "$$unformatted"; exit 1; }
	go vet ./...
	go run honnef.co/go/tools/cmd/staticcheck ./...
	go test ./deploy/test/layout

quick: ## test what needs no engine, no browser and no built program; tests that it skips say so with -v
	go test -short ./...

test: check ## check, and test on engines that it finds or installs; all but what test-deploy does
	go run ./deploy/tools/engines go test -race -timeout 40m $$(go list ./... | grep -vE '$(DEPLOYED)')
	go test ./edge/... # tests of allocations, which the race detector adds to

test-deploy: ## test images, manifests, the Debian package, the manual, alerts, certificates, generated clients, upgrades
	go test -count 1 -timeout 60m $$(go list ./... | grep -E '$(DEPLOYED)')

bench: ## run the benchmarks
	go test -run '^$$' -bench . ./...

fuzz: ## run each fuzz target for FUZZTIME (5s)
	@for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -r dirname | sort -u); do \
		for target in $$(go test -list '^Fuzz' $$dir | grep '^Fuzz'); do \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$dir || exit 1; \
		done; \
	done

screenshots: ## take the README's pictures of the dashboard anew; needs a Chromium, or apt to get one
	go test -count 1 -run '^TestDashboardPictures$$' ./deploy/test/e2e -pictures $(CURDIR)/api/dashboard/screenshots

release: ## build release VERSION=1.2.3 into build/release, the same bytes each time; KEY=FILE signs it
	go run ./deploy/tools/release $(if $(KEY),-release.key $(KEY)) $(ARGS) $(VERSION)
