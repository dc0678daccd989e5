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
CLIENTS    ?=
FAILOVERS  ?= 4
SHARES_TIME ?= 5m
CRASH_TIME ?= 20s
CRASH_LIMIT ?= 10m
LIVE_RUNS  ?= 20
SIM_TIME   ?= 8h
SIM_SEED   ?= 1000
# The short form of tests leaves out what "make simulation" runs. SHORT= is for the long form.
SHORT      ?= -short
# lint, or a line of its own, vets, and no test needs debugging symbols: without both, more than a hundred test programs
# are made faster.
QUICK      := -vet=off -ldflags=-w

# The kill loop and the disk faults start real servers; they are a suite of their own.
CRASH := ./internal/test/crashtest
# The engine has no goroutines of its own, shards run it under the race detector, and the sandbox has few: race adds
# their tests with more than one.
RACE  := ./guard/... ./resp/... ./cluster/... ./shard/... ./client/... ./server/... ./journal/... ./webhook/... ./mcp/... ./hook/... ./internal/agent/... ./internal/hookclient/... ./internal/api/... ./internal/endpoint/...
# The packages with tests that have a short and a long form.
LONG  := ./engine ./journal/filejournal ./merge ./merge/merger ./merge/train ./placement ./shard ./sim/... ./workspace ./writer/account

# The tests that need more than Go are skipped unless this is set (internal/test/tools).
unit examples simulation race crash etcd postgres firestore s3 redis doors packages deploy cover seeded peers-test: export INTERLOCK_TEST_TOOLS = 1

# A recipe that begins with TOOK prints at its end how long it took. Command suite prints that by itself.
TOOK  = trap 'echo "$@ took $$SECONDS s"' EXIT;
BEGAN := $(shell date +%s)

# The packages that are suites of their own.
APART := /journal/pgjournal$$|/journal/redisjournal$$|/internal/test/crashtest$$|/internal/test/openapitest$$|/internal/test/pgtest$$|/internal/test/firestoretest$$|/internal/test/valkeytest$$|/internal/test/doorstest$$|/internal/test/frameworktest$$|/internal/test/redistest$$|/internal/test/typescriptdoors$$|/internal/release$$|/examples/
# What reports files that are not formatted.
FORMATTED = unformatted=$$(go run $(GOFUMPT) -l .); \
	if [ -n "$$unformatted" ]; then printf 'not formatted, run make format:\n%s\n' "$$unformatted"; exit 1; fi

.PHONY: help
help: ## Say what can be made.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

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
check: bin/suite ## Before a commit, in a minute: format, vet, layout, short tests of the packages that changed since BASE.
	@$(TOOK) $(FORMATTED); go vet ./...; \
	packages=$$(scripts/changed.sh $(BASE) | sed -E '\#$(APART)|/internal/layout$$#d'); \
	go test -json $(QUICK) -short -timeout=5m ./internal/layout $$packages | bin/suite -short changed

.PHONY: test
test: deps lint fresh unit examples ## Before a change is sent, in minutes: install what is missing, check, run the tests in their short form.
	@echo "test took $$(( $$(date +%s) - $(BEGAN) )) s"

.PHONY: prove
prove: deps simulation race fuzz crash engines doors cross packages deploy browser ## Run what takes long: simulated worlds, race detector, fuzzing, killed processes, journals in real engines, foreign clients, packages, the chart, the dashboard in a browser.
	@echo "prove took $$(( $$(date +%s) - $(BEGAN) )) s"

.PHONY: deps
deps: ## Install what the tests need on a Debian machine: list what is missing, then install it.
	@$(TOOK) scripts/install-deps.sh

.PHONY: deps-check
deps-check: ## List what "make deps" would install, and install nothing.
	@scripts/install-deps.sh -n

.PHONY: lint
lint: ## Check the format (gofumpt), go vet and staticcheck.
	@$(TOOK) $(FORMATTED); go vet ./...; go run $(STATICCHECK) ./...; echo "lint: clean"

.PHONY: format
format: ## Format all Go files.
	go run $(GOFUMPT) -w .

.PHONY: generate
generate: ## Write the generated files anew.
	proto/generate.sh
	go run ./internal/gen
	go -C web/build run .
	go -C deploy run ./gen

.PHONY: fresh
fresh: ## Check that the generated files are what their sources say.
	@$(TOOK) proto/check.sh; go run ./internal/gen -check; go -C web/build run . -check; go -C deploy run ./gen -check; echo "fresh: the generated files are what their sources say"

# Four packages at a time: most of them wait, for a disk, a server or a clock.
.PHONY: unit
unit: bin/suite ## Run the Go tests in their short form (SHORT= for the long one), without crash, etcd and examples.
	@go test -json $(QUICK) $(SHORT) -p=4 -timeout=10m $$(go list ./... | grep -vE '$(APART)') | bin/suite $(SHORT) -o dist/suites/unit.json unit

.PHONY: examples
examples: bin/suite ## Run the examples and compare what they print.
	@go test -json $(QUICK) -timeout=5m ./examples/... | bin/suite -o dist/suites/examples.json examples

.PHONY: simulation
simulation: bin/suite ## Run the long form of what has one: 400 simulated worlds, long random runs, crash states of the journal.
	@go test -json $(QUICK) -timeout=20m $(LONG) | bin/suite -o dist/suites/simulation.json simulation

.PHONY: race
race: bin/suite ## Run the tests of packages with goroutines under the race detector.
	@scripts/valkey.sh
	@{ go test -json $(QUICK) -timeout=10m -race -short $(RACE); \
	go test -json $(QUICK) -timeout=5m -race -short -run 'Picture|Forward|Signal' ./engine ./workspace/sandbox; } | bin/suite -short -o dist/suites/race.json race

.PHONY: fuzz
fuzz: bin/suite ## Fuzz each target for FUZZ_TIME (5000x inputs, or a time such as 5m).
	@scripts/fuzz.sh $(FUZZ_TIME) | bin/suite -o dist/suites/fuzz.json fuzz

.PHONY: crash
crash: bin/suite ## Kill and stop real processes, fail disks, cut lines; CRASH_TIME (20s) a history.
	@go test -json $(QUICK) -count=1 -timeout=$(CRASH_LIMIT) -parallel=3 $(CRASH) -history=$(CRASH_TIME) | bin/suite -o dist/suites/crash.json crash

.PHONY: etcd
etcd: bin/suite ## Test the journal in etcd, and fail-over FAILOVERS (4) times, with a real cluster.
	@scripts/etcd.sh $(FAILOVERS) | bin/suite -o dist/suites/etcd.json etcd

.PHONY: postgres
postgres: bin/suite ## Test the journal in PostgreSQL, fail-over FAILOVERS (4) times, and several servers for SHARES_TIME (5m), with real servers, standbys and a pooler.
	@{ go test -json $(QUICK) -count=1 -timeout=5m ./journal/pgjournal; \
	go test -json $(QUICK) -count=1 -timeout=30m ./internal/test/pgtest -failovers $(FAILOVERS) -shares $(SHARES_TIME); } | bin/suite -o dist/suites/postgres.json postgres

.PHONY: engines
engines: bin/suite ## Run the suites of all engines that can keep a journal, two at a time.
	@$(TOOK) scripts/together.sh "postgres" "redis etcd firestore s3"

.PHONY: firestore
firestore: bin/suite ## Test the journal in Firestore, and fail-over, with Google's emulator.
	@scripts/valkey.sh
	@go test -json $(QUICK) -count=1 -timeout=8m ./internal/test/firestoretest -failovers 2 -history 10s | bin/suite -o dist/suites/firestore.json firestore

.PHONY: redis
redis: bin/suite ## Test the journal in Redis and Valkey, and fail-over, with real servers, replicas and a cluster.
	@scripts/valkey.sh
	@{ go test -json $(QUICK) -count=1 -timeout=5m ./journal/redisjournal; \
	go test -json $(QUICK) -count=1 -timeout=8m -parallel=3 ./internal/test/valkeytest -failovers 2 -history 8s -shares 15s; } | bin/suite -o dist/suites/redis.json redis

.PHONY: s3
s3: bin/suite ## Test the journal in S3, and fail-over, with two implementations of S3 and a proxy that lets requests fail.
	@go -C journal/oncejournal/s3test test -json -ldflags=-w -count=1 -timeout=8m . -failovers 2 -history 10s | bin/suite -o dist/suites/s3.json s3

.PHONY: doors
doors: bin/suite ## Try the doors with programs of others: what reads an OpenAPI document, the conformance suite of MCP, its Inspector, SDKs of other languages, types of OpenCode, suites of locks over Redis, the decoder of the OpenTelemetry collector; and our client in frameworks, Deno and Bun.
	@scripts/openapi-tools.sh
	@scripts/door-tools.sh
	@scripts/redis-tools.sh
	@scripts/typescript-tools.sh doors
	@scripts/python-tools.sh
	@scripts/framework-tools.sh
	@go -C internal/test/otlptest vet .
	@{ go test -json $(QUICK) -count=1 -timeout=8m -p 1 ./internal/test/openapitest ./internal/test/doorstest ./internal/test/frameworktest ./internal/test/redistest ./internal/test/typescriptdoors; \
	go -C internal/test/otlptest test -json $(QUICK) -count=1 -timeout=3m .; } | bin/suite -o dist/suites/doors.json doors

# What is built for Windows, where no journal directory can be owned.
PORTABLE := . ./client ./cmd/interlock/... ./cmd/interlock-hook ./guard/... ./journal/... ./proto ./server ./shard ./writer/...

.PHONY: cross
cross: ## Check that what no test builds compiles: vet for macOS and Linux on ARM and of bench/peers, build for Windows.
	@$(TOOK) go -C bench/peers vet ./...; GOOS=darwin GOARCH=arm64 go vet ./...; GOOS=linux GOARCH=arm64 go vet ./...; \
	GOOS=windows GOARCH=amd64 go build $(PORTABLE); echo "cross: all platforms and bench/peers build"

.PHONY: packages
packages: bin/suite ## Build a release of this platform and the images twice, check their files, run both on a copy of this machine.
	@scripts/typescript-tools.sh
	@scripts/python-tools.sh
	@install=(-skip '^Test(Install|Image)$$'); \
	if unshare --mount --net true 2>/dev/null; then install=(-install); \
	else echo "packages: not root, so the package is not installed and no image is built" >&2; fi; \
	go test -json $(QUICK) -count=1 -timeout=10m ./internal/release "$${install[@]}" | bin/suite -o dist/suites/packages.json packages

.PHONY: deploy
deploy: bin/suite ## Check the Helm chart and the manifests: lint, the API's types, flags, and a rollout of real servers.
	@go -C deploy vet ./...
	@go -C deploy test -json $(QUICK) -count=1 -timeout=5m ./... | bin/suite -o dist/suites/deploy.json deploy

.PHONY: browser
browser: bin/suite ## Open the dashboard in Chromium: each page, also beside 100,000 keys, login, TLS, tabs, actions, keyboard, hostile names, two tenants, a restart, a fail-over.
	@go -C web/browsertest vet .
	@go -C web/browsertest test -json $(QUICK) -count=1 -timeout=5m -parallel 3 . | bin/suite -o dist/suites/browser.json browser

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

.PHONY: sim
sim: ## Run simulated worlds for SIM_TIME (8h), from the seed SIM_SEED (1000) on.
	go run ./cmd/interlock-sim -seeds $(SIM_SEED)..$(SIM_SEED) -long $(SIM_TIME)

.PHONY: seeded
seeded: ## Put known mistakes in, one at a time, and see which the checks find (an hour).
	@scripts/install-deps.sh all
	@mkdir -p dist
	go run ./cmd/interlock-seeded -o json > dist/seeded.json
	mv dist/seeded.json sim/seeded/last-run.json

.PHONY: reliability
reliability: ## Run what looks for broken promises, and write reliability.json.
	@$(MAKE) --no-print-directory unit crash etcd SHORT=
	@go run ./internal/test/reliability dist/suites/unit.json dist/suites/crash.json dist/suites/etcd.json

.PHONY: live
live: ## Run Gemini CLI and OpenCode with scripted models on one file, with and without hooks, LIVE_RUNS (20) times each.
	@scripts/live-tools.sh
	@go test -tags live -count=1 -timeout=60m ./internal/test/livetest -runs $(LIVE_RUNS) -v

.PHONY: bench
bench: ## Run the benchmarks for BENCH_TIME (1s) each.
	go test -run='^$$' -bench=. -benchmem -benchtime=$(BENCH_TIME) ./...

.PHONY: viewers
viewers: build ## Measure the cost of 50 viewers of the dashboard beside 1,000 and 1,000,000 leases, in some twenty minutes.
	bin/interlock bench viewers --duration 60s

.PHONY: peers
peers: build ## Compare with Redis, etcd and PostgreSQL in one run of some 20 minutes; PEERS="-agents 64 handoff" says what.
	@scripts/install-deps.sh peers
	@cd bench/peers && go run . -binary ../../bin/interlock $(PEERS)

.PHONY: peers-test
peers-test: build ## Check that each peer can be measured.
	@cd bench/peers && go vet . && go test -count=1 . -binary ../../bin/interlock

.PHONY: clients
clients: build ## Compare the clients of Python and TypeScript with locks of Redis, in some 14 minutes; CLIENTS="-callers 16" says what.
	@scripts/install-deps.sh peers
	@scripts/redis-tools.sh
	@scripts/typescript-tools.sh
	@go run ./bench/clients $(CLIENTS)

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
clean: ## Remove what was built.
	rm -rf bin dist

bin/suite: $(wildcard internal/test/suite/*.go)
	@go build -o $@ ./internal/test/suite
