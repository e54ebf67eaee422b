# make build   one static binary, dist/writ
# make test    everything that must be green: installs the peers it tests against
# make help    the other targets

SHELL       := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
MAKEFLAGS   += --no-print-directory
export GOTOOLCHAIN := local
# As what is shipped is built: whatever is vetted, tested and built for one system is
# compiled once. The race detector alone needs cgo.
export CGO_ENABLED := 0
export GOFLAGS := $(sort $(GOFLAGS) -trimpath)

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
PEERS   := $(CURDIR)/testdata/peers
CLIENTS := $(CURDIR)/testdata/clients
BIN     := $(PEERS)/bin
# gopls is built from its own go.mod at this version; the other tools are
# pinned in tools.mod, the npm packages in the lockfiles of PEERS and CLIENTS.
GOPLS   := v0.23.0
EVAL    := eval/results/offline_gate_eval.json
# Written also where a gate is not met; then the command's exit code is 65.
# make check makes it again and compares.
MEMORY := eval/results/memory.json
# Of traces that are no part of the repository: compared where they are.
REPLAY  := eval/results/replay
TRACES  := ../shared/corpus/agentdojo.dev.jsonl.gz
FOREIGN := darwin/arm64 windows/amd64 linux/arm64
FUZZTIME  ?= 20s
BENCHTIME ?= 1s
LONGTIME  ?= 120m
# Where the race detector costs minutes and watches nothing of its own; make test-long
# watches these too. ALONE has one goroutine, in its tests and in all that it imports,
# but for those that SIDES start; make check holds it to that. internal/certificate has one
# for each core: what its sessions share, a policy and a catalogue, SIDES share too. PROGRAMS are run in
# processes without the detector, and are made of packages that it watches. They run in
# this order, and what takes longest comes first: else it ends alone, on one core.
ALONE    := . ./contracts ./gate ./internal/ask/claim ./internal/ask/screen ./internal/calendar ./internal/clients ./internal/draft ./internal/learn ./internal/numeral \
            ./internal/quote ./internal/schema ./internal/shell ./internal/strictyaml ./internal/text ./internal/words ./memory ./policy ./provenance
PROGRAMS := ./cmd/writ ./internal/peers ./cmd/writ-eval ./eval/...
UNRACED  := ./internal/certificate $(PROGRAMS) $(ALONE)
SIDES    := TestDecideSideBySide|TestRemoteReferences
# Tests of watched packages that are as UNRACED is: they run processes, or one goroutine.
# Both runs go by this one expression, so that a test is in the one or in the other.
APART    := TestKilledGateways|TestScreened|TestKilled|TestEachCallFails|TestKilledInRecovery|TestOpenedAfterFailedSync|TestFaultsAreFound|TestFullDisk|TestProofFlipped|TestProve|TestCheckpoint|TestManyRows|TestManyTools|TestManyValues|TestManyBeliefs|TestManySessions
holding   = $$(git grep -lE '^func ($(1))\(' -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's|^|./|')

.PHONY: help build test test-long quick beside check eval invariants race raced unraced apart foreign arm64 conformance peers clients bench speed fuzz cover lines notices pictures release clean

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

build: ## dist/writ, static, with its version in it
	go build -ldflags '-s -w -X main.release=$(VERSION)' -o dist/writ ./cmd/writ

quick: ## go test ./..., nothing but Go needed; tests that need a peer skip
	go test ./...

# The tests that are watched for races wait much, for disks and for processes; what is
# beside them is one core's work at a time, so that they are not starved. What both stand
# on is installed before, so that nothing is installed twice at once; what comes later
# needs the rest, which is fetched and built meanwhile. The emulated machine, a package at a
# time, would leave a core idle behind the first and fills the second. What measures a
# time comes last, by itself, and with the garbage collector as users have it: the rest
# collects at four times what lives instead of at twice, which is a quarter of the work.
test: ## everything that must be green
	$(MAKE) -j2 $(PEERS)/.stamp-debian $(PEERS)/.stamp-npm $(BIN)/staticcheck
	GOGC=400 $(MAKE) -j4 raced beside peers clients
	GOGC=400 $(MAKE) -j3 unraced apart arm64
	$(MAKE) conformance
	@echo 'make test: all green'

beside: export GOFLAGS += -p=1
beside:
	$(MAKE) check
	$(MAKE) foreign

check: $(BIN)/staticcheck ## gofmt, go vet, staticcheck, licences, the evaluations of gates, memory and traces
	@bad="$$(gofmt -l $$(git ls-files -co --exclude-standard -- '*.go'))"; \
	if [ -n "$$bad" ]; then echo "gofmt -l:"; echo "$$bad"; exit 1; fi
	go vet ./...
	$(BIN)/staticcheck ./...
	go run ./internal/release -notices THIRD_PARTY_NOTICES -check
	go test -count=1 -run '^TestOneDoor$$' .
	@found="$$(for d in $$(go list -deps -test -f '{{if .Module}}{{if .Module.Main}}{{.Dir}}{{end}}{{end}}' $(ALONE) | grep -v /internal/certificate$$ | sort -u); do cat $$d/*.go; done | \
	  awk '/^func /{f = $$0; sub(/^func (\([^)]*\) )?/, "", f); sub(/[[(].*/, "", f)} /^\t+(defer )?go [a-zA-Z(]|\.Go\(|\.Parallel\(/{print f}' | sort -u | paste -sd'|')"; \
	[ "$$found" = '$(SIDES)' ] || { echo "make check: goroutines of what ALONE imports start in $$found, and SIDES is $(SIDES)" >&2; exit 1; }
	go build -o dist/writ-eval ./cmd/writ-eval
	dist/writ-eval gates --out dist/offline_gate_eval.json
	cmp dist/offline_gate_eval.json $(EVAL)
	rm -f dist/memory.json
	dist/writ-eval memory --out dist/memory.json > /dev/null || test -s dist/memory.json
	cmp dist/memory.json $(MEMORY)
	cmp dist/memory.svg $(MEMORY:.json=.svg)
	if [ -e $(TRACES) ]; then \
	  dist/writ-eval replay --adaptive --out dist/replay.json > /dev/null; \
	  for e in json md svg; do cmp dist/replay.$$e $(REPLAY).$$e; done; \
	else echo 'make check: $(TRACES) is not here: $(REPLAY).json is not compared'; fi
	dist/writ-eval invariants --markdown | cmp - INVARIANTS.md # run they are by its tests

eval: ## measure the gates, the memory and recorded traces offline and write the results that are committed
	go run ./cmd/writ-eval gates --out $(EVAL)
	# 65 says that a gate is not met; the result is written all the same.
	rm -f $(MEMORY)
	go run ./cmd/writ-eval memory --out $(MEMORY) || test -s $(MEMORY)
	go run ./cmd/writ-eval replay --adaptive --out $(REPLAY).json

invariants: ## make INVARIANTS.md of its table
	@mkdir -p dist
	go run ./cmd/writ-eval invariants --markdown > dist/INVARIANTS.md
	mv dist/INVARIANTS.md INVARIANTS.md

race: raced unraced apart ## every test with the real peers and clients, and with the race detector but for UNRACED and APART

# make check vets all that these run.
raced: $(PEERS)/.stamp-npm
	CGO_ENABLED=1 WRIT_PEERS=$(PEERS) go test -vet=off -race -timeout 15m -skip '^($(APART))$$' $$(go list ./... | grep -vxF "$$(go list $(UNRACED))")
	CGO_ENABLED=1 go test -vet=off -race -run '^($(SIDES))$$' $(call holding,$(SIDES))

# What comes first computes the longest, and the programs behind it wait much: a third package
# at a time fills the cores.
unraced: peers clients
	WRIT_PEERS=$(PEERS) go test -vet=off -p 3 -timeout 25m $(UNRACED)

apart:
	go test -vet=off -p 1 -timeout 15m -run '^($(APART))$$' $(call holding,$(APART))

# For another processor under the same system go vet reads what make check has vetted,
# but where a name or a constraint chooses a file by the processor.
foreign: ## vet and build for the systems desktop clients live on
	@for t in $(FOREIGN); do \
	  echo "vet and build $$t"; \
	  which=./...; \
	  [ $${t%/*} != "$$(go env GOHOSTOS)" ] || which="$$({ git ls-files '*_a??64.go' '*_a??64_test.go'; git grep -lE '^//go:build .*(amd64|arm64)' -- '*.go' || true; } | xargs -n1 dirname | sort -u | sed 's|^|./|')"; \
	  GOOS=$${t%/*} GOARCH=$${t#*/} go vet $$which; \
	  GOOS=$${t%/*} GOARCH=$${t#*/} go build -o /dev/null ./cmd/writ; \
	done

# What the memory decides is the same on every machine, to the byte. This one is
# emulated: its float64 functions round otherwise and its products are fused,
# and the digests in memory/testdata must come out all the same. Left out
# are one test that bounds work and decides nothing, and two of very many verifications,
# which decide nothing otherwise than those of single ones.
arm64: export GOFLAGS += -p=1
arm64: $(PEERS)/.stamp-debian ## the tests of the pure packages on an emulated linux/arm64
	GOOS=linux GOARCH=arm64 go test -vet=off -timeout 25m -exec qemu-aarch64-static ./memory ./eval/memory/origin -rapid.checks=15
	GOOS=linux GOARCH=arm64 go test -vet=off -timeout 25m -exec qemu-aarch64-static -skip '^(TestReadingIsBounded|TestBundleEveryByte|TestProofFlipped)$$' ./provenance ./internal/schema ./policy ./gate ./audit ./internal/ask/claim

conformance: peers build ## the official conformance runner, and the speed's own calls, through the built binary
	WRIT_PEERS=$(PEERS) WRIT_BINARY=$(CURDIR)/dist/writ go test -count=1 -v -timeout 10m ./internal/conformance ./eval/speed

test-long: peers clients ## the runs too long for every change
	CGO_ENABLED=1 WRIT_PEERS=$(PEERS) go test -race -timeout $(LONGTIME) $(UNRACED)
	CGO_ENABLED=1 go test -race -timeout $(LONGTIME) -run '^($(APART))$$' $(call holding,$(APART))
	WRIT_PEERS=$(PEERS) WRIT_LONG=1 go test -timeout $(LONGTIME) ./...

bench: peers speed ## all benchmarks; compare ratios of one run only
	WRIT_PEERS=$(PEERS) go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...

speed: build ## what a call costs through the built program, beside a relay's, and its record, into eval/results; fails where a call got worse by a quarter
	go run ./eval/speed -writ dist/writ -out eval/results/speed.json -record eval/results/record.json -page docs/performance.md

fuzz: ## each fuzz target for FUZZTIME
	@for p in $$(go list ./...); do \
	  for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
	    echo "$$p $$f"; \
	    go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$p; \
	  done; \
	done

cover: peers clients ## statement coverage, cover.out
	WRIT_PEERS=$(PEERS) go test -coverpkg=./... -coverprofile=cover.out ./...
	go tool cover -func=cover.out | tail -1

lines: ## count the lines of Go that are no tests: linked into writ, apart from it, and by room
	@all="$$(git ls-files '*.go' | grep -v _test.go)"; of() { xargs cat | wc -l; }; \
	linked="$$(go list -deps -f '{{if .Module}}{{if .Module.Main}}{{$$d := .Dir}}{{range .GoFiles}}{{$$d}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}' ./cmd/writ | grep .)"; \
	echo "linked into writ $$(echo "$$linked" | of)"; \
	echo "evaluation and test support $$(echo "$$all" | grep -E '^(eval|cmd/writ-eval|internal/(storetest|hostile|conformance|definitions|release))/' | of)"; \
	echo "$$linked" | xargs wc -l | awk -v p="$$PWD/" '$$2 != "total" { d = substr($$2, length(p) + 1); if (!sub("/[^/]*$$", "", d)) d = "."; n[d] += $$1 } END { for (d in n) print n[d], d }' | sort -rn

notices: ## regenerate THIRD_PARTY_NOTICES
	go run ./internal/release -notices THIRD_PARTY_NOTICES

pictures: ## the pictures in docs, as a test sees them in Chromium
	rm -rf dist/pictures
	mkdir -p dist/pictures
	WRIT_SCREENSHOTS=$(CURDIR)/dist/pictures go test -count=1 -run '^TestConsoleFirst$$' ./cmd/writ
	@test -e dist/pictures/console-first-run.png || { echo 'make pictures: chromium is not here, or needs another system than this' >&2; exit 1; }
	install -m 644 dist/pictures/console-first-run.png docs/

# What is committed is released, at the commit's own time: whoever makes it again with
# this Go gets the same bytes. KEY is a private key for ssh-keygen -Y sign.
release: ## what is shipped for all systems, dist/release; KEY=FILE signs its checksums
	@test -z "$$(git status --porcelain)" || { echo 'make release: something is not committed' >&2; exit 1; }
	rm -rf dist/release
	go run ./internal/release -version $(VERSION) -time $$(git log -1 --format=%ct) -out dist/release $(if $(KEY),-key $(KEY))

clean: ## what make built; the installed peers stay
	rm -rf dist cover.out

# What the tests talk to. Each part leaves a stamp, so that the next run is quick.
peers: $(PEERS)/.stamp-debian $(PEERS)/.stamp-npm $(BIN)/gopls $(BIN)/everything-server ## install what the tests talk to

clients: $(CLIENTS)/.stamp-npm ## install the agents that the tests connect: 1.1 GB

# Debian's packages are installed only where we are root; elsewhere the missing
# command is named and the run stops. PostgreSQL's makes a database and serves it, unless it
# is told before not to: a test starts its own.
$(PEERS)/.stamp-debian: DEBIAN := strace:strace gcc:gcc npm:npm qemu-aarch64-static:qemu-user-static chromium:chromium script:bsdutils pg_ctlcluster:postgresql redis-check-rdb:redis-tools
$(PEERS)/.stamp-debian: Makefile
	@missing=; \
	for pair in $(DEBIAN); do \
	  command -v $${pair%:*} >/dev/null || missing="$$missing $${pair#*:}"; \
	done; \
	if [ -n "$$missing" ]; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "apt-get install$$missing"; \
	    command -v pg_ctlcluster >/dev/null || { mkdir -p /etc/postgresql-common; echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.conf; }; \
	    { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends -o Dpkg::Options::=--force-confold $$missing; } >/dev/null; \
	  else \
	    echo "make: install these first:$$missing" >&2; exit 1; \
	  fi; \
	fi
	@touch $@

$(PEERS)/.stamp-npm: $(PEERS)/package-lock.json $(PEERS)/package.json $(PEERS)/.npmrc | $(PEERS)/.stamp-debian
	cd $(PEERS) && npm ci --loglevel=error
	@touch $@

$(CLIENTS)/.stamp-npm: $(CLIENTS)/package-lock.json $(CLIENTS)/package.json $(CLIENTS)/.npmrc | $(PEERS)/.stamp-debian
	cd $(CLIENTS) && npm ci --loglevel=error
	@touch $@

$(BIN)/gopls: Makefile
	GOFLAGS=-trimpath GOBIN=$(BIN) go install golang.org/x/tools/gopls@$(GOPLS)
	@touch $@

$(BIN)/everything-server: go.mod
	go build -o $@ github.com/modelcontextprotocol/go-sdk/conformance/everything-server
	@touch $@

$(BIN)/staticcheck: tools.mod tools.sum
	go build -modfile=tools.mod -o $@ honnef.co/go/tools/cmd/staticcheck
	@touch $@
