# Everything that is done with this repository by hand or by machine. "make" alone explains itself.

SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c
.NOTPARALLEL:
.DEFAULT_GOAL := help

GOFUMPT    := mvdan.cc/gofumpt@v0.10.0
BENCH_TIME ?= 1s
PEERS      ?=
CLIENTS    ?=
LIVE_RUNS  ?= 20
# lint vets, and no test needs debugging symbols: without both, more than a hundred test programs are made faster.
QUICK      := -vet=off -ldflags=-w

# The suites: internal/test/suite has the table of what each runs. They read FAILOVERS, SHARES_TIME, HISTORY_TIME,
# CRASH_TIME, CRASH_LIMIT, SIMULATION_LIMIT, FUZZ_TIME and SHORT (SHORT= is for the long form of the suite unit). With
# GO_ON=1 a group of suites goes on after a failure.
SUITES := fresh lint unit examples crash postgres simulation race fuzz doors etcd redis firestore s3 packages browser deploy cross

# The tests that need more than Go are skipped unless this is set (internal/test/tools). The suites set it.
cover seeded peers-test: export INTERLOCK_TEST_TOOLS = 1

# A recipe that begins with TOOK prints at its end how long it took. Command suite prints that by itself.
TOOK  = trap 'echo "$@ took $$SECONDS s"' EXIT;

# What reports files that are not formatted.
FORMATTED = unformatted=$$(go run $(GOFUMPT) -l .); \
	if [ -n "$$unformatted" ]; then printf 'not formatted, run make format:\n%s\n' "$$unformatted"; exit 1; fi

.PHONY: help
help: ## Say what can be made.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "Suites of tests:"; go run ./internal/test/suite list

.PHONY: build
build: ## Build the binaries bin/interlock and bin/interlock-hook.
	go build -o bin/interlock ./cmd/interlock
	CGO_ENABLED=0 go build -ldflags="-s -w" -o bin/interlock-hook ./cmd/interlock-hook

.PHONY: demo
demo: build ## Start a server, let 50 agents race without and with leases, compare.
	bin/interlock demo race

.PHONY: serve
serve: build ## Start a server on this machine, with its journal in ./data.
	bin/interlock serve --data-dir data

.PHONY: check
check: bin/suite bin/reach ## Before a commit, in a minute or three: format, then vet and the short tests that what changed since BASE can break.
	@$(TOOK) $(FORMATTED); \
	bin/reach -apart="$$(bin/suite apart)" -base='$(BASE)' -- $(QUICK) -short -timeout=5m | bin/suite -stdin -short changed

.PHONY: test
test: deps bin/suite ## Before a change is sent, in minutes: install what is missing, check, run the tests in their short form.
	@bin/suite test

.PHONY: prove
prove: deps-all bin/suite ## Run what takes long: simulated worlds, race detector, fuzzing, killed processes, journals in real engines, foreign clients, packages, the chart, the dashboard in a browser.
	@bin/suite prove

.PHONY: engines
engines: bin/suite ## Run the suites of all engines that can keep a journal, side by side.
	@bin/suite engines

.PHONY: $(SUITES)
$(SUITES): bin/suite
	@bin/suite $@

.PHONY: sum
sum: bin/suite ## Print the results of the last runs of all suites, and fail if they have more than two unstable tests.
	@bin/suite sum

.PHONY: times
times: bin/suite ## Print how long each suite took, by commit.
	@bin/suite times

# What asks before it installs something names this command.
export AGAIN := make $(MAKECMDGOALS)

# The command of a recipe, with the servers that scripts/server-tools.sh unpacks in PATH.
WITH_SERVERS = PATH="$$PATH:$$(realpath -q $(CURDIR)/dist/servers/*/bin | paste -sd:)"

.PHONY: deps
deps: ## Install what "make test" needs on a Debian machine: list what is missing, ask (not with YES=1), install it.
	@$(TOOK) scripts/install-deps.sh

.PHONY: deps-all
deps-all: ## Install what "make prove" needs, in the same way.
	@$(TOOK) scripts/install-deps.sh all

.PHONY: deps-check
deps-check: ## List what "make deps" would install, and install nothing.
	@scripts/install-deps.sh -n

.PHONY: format
format: ## Format all Go files.
	go run $(GOFUMPT) -w .

.PHONY: generate
generate: ## Write the generated files anew.
	go run ./internal/gen
	go -C web/build run .
	go -C deploy run ./gen

.PHONY: screenshots
screenshots: ## Write pictures of the dashboard into docs/img, light and dark.
	@mkdir -p docs/img
	go -C web/browsertest test -count=1 -run '^TestPages$$' . -screenshots $(CURDIR)/docs/img

.PHONY: release
release: ## Build all files of a release into dist/release: the commit's tag is the version.
	@scripts/typescript-tools.sh
	@scripts/python-tools.sh
	go run ./internal/release -o dist/release

.PHONY: image
image: ## Build the image of the server for Linux on amd64 and arm64 into dist/image: with buildah, or else with docker.
	go run ./internal/release -image -o dist/image

.PHONY: shake
shake: deps bin/suite ## Run all packages RUNS (10) times under load, with and without the race detector; list what failed once.
	@bin/suite shake

.PHONY: night
night: deps bin/suite ## Run searches (worlds, models, histories, fuzzing) for HOURS=8 from seeds of their own, and record them in reliability.json.
	@bin/suite night

.PHONY: seeded
seeded: ## Put known mistakes in, one at a time, and see which the checks find (two hours; it goes on where it was ended).
	@scripts/install-deps.sh all
	go run ./cmd/interlock-seeded -record sim/seeded/next-run.json
	mv sim/seeded/next-run.json sim/seeded/last-run.json

.PHONY: reliability
reliability: ## Run what looks for broken promises, and write reliability.json.
	@$(MAKE) --no-print-directory unit crash etcd SHORT=
	@go run ./internal/test/reliability dist/suites/unit.json dist/suites/crash.json dist/suites/etcd.json

.PHONY: live
live: ## Run Gemini CLI and OpenCode with scripted models on one file, with and without hooks, LIVE_RUNS (20) times each.
	@scripts/live-tools.sh
	@go test -tags live -count=1 -timeout=4h ./internal/test/livetest -runs $(LIVE_RUNS) -v

FAIL_OVER = -count=1 -timeout=0 -run '^TestFailOver$$' -v -args -failovers $(N) -deaths kill,vanish
N ?= 200
.PHONY: failovers
failovers: ## Print how long N (200) fail-overs over each engine take, half of them by kill, half by a machine that vanishes.
	@scripts/install-deps.sh all
	@export INTERLOCK_TEST_TOOLS=1; failed=0; \
	for folder in internal/test/pgtest internal/test/valkeytest internal/test/firestoretest \
		journal/etcdjournal/etcdtest journal/oncejournal/s3test; do \
		go -C "$$folder" test . $(FAIL_OVER) | grep -E '\| [a-z0-9]+ \||^(---|FAIL)' || failed=1; \
	done; exit $$failed

.PHONY: bench
bench: ## Run the benchmarks for BENCH_TIME (1s) each.
	go test -run='^$$' -bench=. -benchmem -benchtime=$(BENCH_TIME) ./...

.PHONY: viewers
viewers: build ## Measure the cost of 50 viewers of the dashboard beside 1,000 and 1,000,000 leases, in some twenty minutes.
	bin/interlock bench viewers --duration 60s

.PHONY: peers
peers: build ## Compare with Redis, etcd and PostgreSQL in one run of some 20 minutes; PEERS="-agents 64 handoff" says what.
	@scripts/install-deps.sh peers
	@cd bench/peers && $(WITH_SERVERS) go run . -binary ../../bin/interlock $(PEERS)

.PHONY: peers-test
peers-test: build ## Check that each peer can be measured.
	@cd bench/peers && go vet . && $(WITH_SERVERS) go test -count=1 . -binary ../../bin/interlock

.PHONY: clients
clients: build ## Compare the clients of Python and TypeScript with locks of Redis, in some 14 minutes; CLIENTS="-callers 16" says what.
	@scripts/install-deps.sh peers
	@scripts/redis-tools.sh
	@scripts/typescript-tools.sh
	@$(WITH_SERVERS) go run ./bench/clients $(CLIENTS)

.PHONY: clients-test
clients-test: ## Check that each client can be measured.
	@$(MAKE) --no-print-directory clients CLIENTS="-rounds 1 -callers 2 -duration 50ms -leases 20 -hold 100ms"

.PHONY: cover
cover: ## Say how much of the code the tests reach, by function in dist/cover.txt.
	@scripts/install-deps.sh all
	@mkdir -p dist
	@go test -short -coverpkg=./... -coverprofile=dist/cover.out $$(go list ./... | grep -v /internal/test/crashtest) > dist/cover.log || { cat dist/cover.log; exit 1; }
	@go tool cover -func=dist/cover.out > dist/cover.txt
	@tail -n 1 dist/cover.txt

.PHONY: clean
clean: ## Remove what was built, and the links to what was installed.
	rm -rf bin dist

.PHONY: clean-cache
clean-cache: ## Remove what "make deps" installed for all clones (not the Debian packages).
	scripts/install-deps.sh clean

bin/suite: $(wildcard internal/test/suite/*.go)
	@go build -o $@ ./internal/test/suite

bin/reach: $(wildcard internal/test/reach/*.go)
	@go build -o $@ ./internal/test/reach
