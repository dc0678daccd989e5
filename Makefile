# Everything that is done with this repository by hand or by machine. "make" alone explains itself.

SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c
.NOTPARALLEL:
.DEFAULT_GOAL := help

# Tools that are not in go.mod, each at the version with which the repository passes.
GOFUMPT     := mvdan.cc/gofumpt@v0.10.0
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.7.0

# A number of inputs, not a time: a fuzz run that is stopped by its time sometimes ends in an error of its own.
FUZZ_TIME  ?= 5000x
BENCH_TIME ?= 1s
PEERS      ?=
FAILOVERS  ?= 4
CRASH_TIME ?= 20s
CRASH_LIMIT ?= 10m
SIM_TIME   ?= 8h
SIM_SEED   ?= 1000

# The kill loop and the disk faults start real servers; they are a suite of their own.
CRASH := ./internal/crashtest
RACE  := ./guard/... ./shard/... ./client/... ./server/... ./journal/... ./engine/...

.PHONY: help
help: ## Say what can be made.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the binary bin/interlock.
	go build -o bin/interlock ./cmd/interlock

.PHONY: demo
demo: build ## Start a server, let 50 agents race without and with leases, compare.
	bin/interlock demo race

.PHONY: serve
serve: build ## Start a server on this machine, with its journal in ./data.
	bin/interlock serve --data-dir data

.PHONY: test
test: deps lint fresh unit race fuzz crash etcd ## Everything: install what is missing, check, and run every test.

.PHONY: deps
deps: ## Install what the tests need on a Debian machine, if it is missing.
	@scripts/install-deps.sh

.PHONY: lint
lint: ## Check the format (gofumpt), go vet and staticcheck.
	@unformatted=$$(go run $(GOFUMPT) -l .); \
	if [ -n "$$unformatted" ]; then printf 'not formatted, run make format:\n%s\n' "$$unformatted"; exit 1; fi
	@go vet ./...
	@go run $(STATICCHECK) ./...
	@echo "lint: clean"

.PHONY: format
format: ## Format all Go files.
	go run $(GOFUMPT) -w .

.PHONY: generate
generate: ## Write the generated files anew.
	proto/generate.sh

.PHONY: fresh
fresh: ## Check that the generated files are what their sources say.
	@proto/check.sh
	@echo "fresh: the generated files are what their sources say"

.PHONY: unit
unit: bin/suite ## Run the Go tests, except those of the targets race, fuzz, crash and etcd.
	@go test -json -timeout=10m $$(go list ./... | grep -v /internal/crashtest) | bin/suite -o dist/suites/unit.json unit

.PHONY: race
race: bin/suite ## Run the tests of what has goroutines under the race detector.
	@go test -json -timeout=10m -race -short $(RACE) | bin/suite -short -o dist/suites/race.json race

.PHONY: fuzz
fuzz: bin/suite ## Fuzz each target for FUZZ_TIME (5000x inputs, or a time such as 5m).
	@scripts/fuzz.sh $(FUZZ_TIME) | bin/suite -o dist/suites/fuzz.json fuzz

.PHONY: crash
crash: bin/suite ## Kill and stop real processes, fail disks, cut lines; CRASH_TIME (20s) a history.
	@go test -json -count=1 -timeout=$(CRASH_LIMIT) -parallel=3 $(CRASH) -history=$(CRASH_TIME) | bin/suite -o dist/suites/crash.json crash

.PHONY: etcd
etcd: bin/suite ## Test the journal in etcd, and fail-over FAILOVERS (4) times, with a real cluster.
	@scripts/etcd.sh $(FAILOVERS) | bin/suite -o dist/suites/etcd.json etcd

.PHONY: sim
sim: ## Run simulated worlds for SIM_TIME (8h), from the seed SIM_SEED (1000) on.
	go run ./cmd/interlock-sim -seeds $(SIM_SEED)..$(SIM_SEED) -long $(SIM_TIME)

.PHONY: seeded
seeded: ## Put known mistakes in, one at a time, and see which the checks find (an hour).
	@mkdir -p dist
	go run ./cmd/interlock-seeded -o json > dist/seeded.json
	mv dist/seeded.json sim/seeded/last-run.json

.PHONY: reliability
reliability: unit crash etcd ## Run what looks for broken promises, and write reliability.json.
	@go run ./internal/reliability dist/suites/unit.json dist/suites/crash.json dist/suites/etcd.json

.PHONY: bench
bench: ## Run the benchmarks for BENCH_TIME (1s) each.
	go test -run='^$$' -bench=. -benchmem -benchtime=$(BENCH_TIME) ./...

.PHONY: peers
peers: build ## Compare with Redis, etcd and PostgreSQL in one run of some 20 minutes; PEERS="-agents 64 handoff" says what.
	@scripts/install-deps.sh peers
	@cd bench/peers && go run . -binary ../../bin/interlock $(PEERS)

.PHONY: peers-test
peers-test: build ## Check that each peer that is installed can be measured.
	@cd bench/peers && go vet . && go test -count=1 . -binary ../../bin/interlock

.PHONY: cover
cover: ## Say how much of the code the tests reach, by function in dist/cover.txt.
	@mkdir -p dist
	@go test -short -coverpkg=./... -coverprofile=dist/cover.out $$(go list ./... | grep -v /internal/crashtest) > dist/cover.log || { cat dist/cover.log; exit 1; }
	@go tool cover -func=dist/cover.out > dist/cover.txt
	@tail -n 1 dist/cover.txt

.PHONY: clean
clean: ## Remove what was built.
	rm -rf bin dist

bin/suite: $(wildcard internal/suite/*.go)
	@go build -o $@ ./internal/suite
