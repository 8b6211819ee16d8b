# agentd: build, test and show. `make help` lists the targets.
SHELL       := /bin/bash
.SHELLFLAGS := -Eeuo pipefail -c
.DEFAULT_GOAL := build

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -s -w -X agentd/cli.version=$(VERSION)
TOOL    := go tool -modfile=tools.mod
PREFIX  ?= /usr/local

export CGO_ENABLED := 0

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build ./agentd
	go build -trimpath -ldflags '$(LDFLAGS)' -o agentd ./cmd/agentd

.PHONY: install
install: build man ## install agentd and its manual pages below $(PREFIX)
	install -Dm755 agentd $(DESTDIR)$(PREFIX)/bin/agentd
	install -Dm644 -t $(DESTDIR)$(PREFIX)/share/man/man1 dist/man/*.1

.PHONY: man
man: ## write the manual pages into dist/man
	go run ./internal/docgen dist/man

.PHONY: setup
setup: ## install what the tests use (as root with apt-get; otherwise say what is missing)
	@./scripts/setup

.PHONY: test
test: setup ## all tests, those under a booted systemd too (as root)
	go vet ./...
	go test -timeout 20m ./...

.PHONY: race
race: ## the tests under the race detector (needs gcc)
	CGO_ENABLED=1 go test -race -timeout 40m ./...

.PHONY: test-clis
test-clis: ## the presets with the real agent CLIs, from the npm registry, without a network (4 minutes)
	@./scripts/test-clis

.PHONY: fuzz
fuzz: ## fuzz each parser for FUZZTIME (default 10m)
	@./scripts/fuzz

.PHONY: lint
lint: setup ## gofmt, go vet, staticcheck, shellcheck
	@unformatted=$$(gofmt -l .); [[ -z $$unformatted ]] || { echo "gofmt would change:"; echo "$$unformatted"; exit 1; }
	go vet ./...
	$(TOOL) staticcheck ./...
	@if command -v shellcheck >/dev/null; then git ls-files | xargs -r grep -lIE '^#!.*\b(ba)?sh\b' | grep -vE "testdata/|\.tmpl$$" | xargs -r shellcheck; \
	else echo "skipped: shellcheck is not installed"; fi

.PHONY: demo
demo: build ## see the whole thing work, without a key and without a network
	@./scripts/demo

.PHONY: bench
bench: build ## benchmarks, as ratios against a peer; see BENCHMARKS.md
	@./scripts/bench

.PHONY: soak
soak: setup ## long campaigns: kills at every sync and at 500 random moments, lane fights (about an hour)
	KILLS=500 go test ./cli -run 'TestKilled' -timeout 3h -v
	SESSION_KILLS=500 go test ./session -timeout 1h
	LANES_SECONDS=60 go test ./lanes -timeout 1h
	EXPR_SPECS=20000 go test ./scheduler/expr -timeout 1h
	HOSTILE_BYTES=5000000000 go test ./backend -run TestHostile -timeout 1h
	DAEMON_JUMPS=200 go test ./scheduler/daemon -run TestJumps -timeout 1h

.PHONY: clean
clean: ## remove what the build made
	rm -rf agentd dist
