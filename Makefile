# Everything is reached from here; `make` alone lists it.

SHELL := /bin/bash
SWIFT ?= swift
ARGS ?=
FILTER ?=
export SWIFT
# Warnings are errors here, and nobody's who depends on this package.
# Not SSL_PINNING_…: the server refuses a variable of that kind that it does not know.
export PINNING_BUILD_STRICT := 1
export PYTHONDONTWRITEBYTECODE := 1

# An import that Package.swift does not declare is an error. The flag is the same
# everywhere: another one would build everything again.
STRICT := --explicit-target-dependency-import-check error

# So many tests at a time. Each starts real servers; all at once they would keep each other waiting.
WIDTH := --experimental-maximum-parallelization-width 4

.DEFAULT_GOAL := help
.PHONY: help deps deps-test build release demo drill drill-kill drill-replicas drill-acme test package check-package check check-fast check-apple check-linking check-consumer docs api bench bench-smoke deps-bench \
	sanitize mutants clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo '  make demo ARGS=--once    prove it and exit; without ARGS it stays up'
	@echo '  make test FILTER=name    only the tests whose name matches; make drill likewise'
	@echo '  make mutants FILTER=name only the mutants whose name has this part in it; ARGS=--resume goes on'

deps: ## install what building and running need, if it is missing
	@scripts/deps.sh build

deps-test: ## install what the tests need too, if it is missing
	@scripts/deps.sh test

deps-bench: ## install what building and measuring need, if it is missing
	@scripts/deps.sh bench

build: deps ## build for debugging
	$(SWIFT) build $(STRICT)

release: deps ## build the optimised ssl-pinning into .build/release
	$(SWIFT) build $(STRICT) -c release --product ssl-pinning

package: deps ## build the Debian package; it needs no Swift where it is installed
	@scripts/package.py

demo: deps ## run the main job on loopback, start to end
	$(SWIFT) build $(STRICT) --product ssl-pinning
	$(SWIFT) build $(STRICT) --product ssl-pinning-lab
	@.build/debug/ssl-pinning-lab demo $(ARGS)

drill: deps ## prove that no change locks anybody out and no attack gets in
	$(SWIFT) build $(STRICT) --product ssl-pinning
	$(SWIFT) build $(STRICT) --product ssl-pinning-lab
	@.build/debug/ssl-pinning-lab drill $(if $(FILTER),--filter '$(FILTER)') $(ARGS)

drill-kill: deps-test ## prove that what a store acknowledged survives kill -9, 500 times each
	$(SWIFT) build $(STRICT) --product ssl-pinning-lab
	@.build/debug/ssl-pinning-lab drill kill $(ARGS)

drill-replicas: deps-test ## prove that replicas on one database go on while servers, database and network fail
	$(SWIFT) build $(STRICT) --product ssl-pinning
	$(SWIFT) build $(STRICT) --product ssl-pinning-lab
	@.build/debug/ssl-pinning-lab drill replicas $(ARGS)

drill-acme: deps-test ## prove that apps notice nothing of 200 renewals with new keys, whatever fails meanwhile
	$(SWIFT) build $(STRICT) --product ssl-pinning
	$(SWIFT) build $(STRICT) --product ssl-pinning-lab
	@.build/debug/ssl-pinning-lab drill acme $(ARGS)

test: deps-test ## run all tests
	@mkdir -p .build && set -o pipefail && \
	$(SWIFT) test $(STRICT) --disable-xctest $(WIDTH) $(if $(FILTER),--filter '$(FILTER)') 2>&1 | tee .build/test.log \
	|| { printf '\nwhat failed:\n'; grep -aE -A8 '✘ Test .*(recorded an issue|failed after)|Fatal error|error: ' .build/test.log | head -200; exit 1; }

sanitize: deps-test ## run all tests under the thread and the address sanitizer
	@scripts/sanitize.sh thread '$(FILTER)'
	@scripts/sanitize.sh address '$(FILTER)'

mutants: deps-test ## break each rule in turn, in a copy: the tests must notice every time
	@scripts/mutants.py $(ARGS) $(FILTER)

check: deps-test check-fast check-apple docs check-linking check-consumer bench-smoke ## everything a change must pass but the tests: rules, format, warnings
	$(SWIFT) build $(STRICT) --build-tests
	@scripts/installed.sh

check-fast: deps-test ## the part of check that compiles nothing
	@scripts/check-all.sh

check-apple: deps-test ## type-check what an app links, and App, for Apple's systems, against stubs that say what Apple declares
	@scripts/apple/check.py --self-test
	@scripts/apple/check.py
	@scripts/apple/narrow.py

check-linking: deps-test ## build and run a pinned program linked in four ways, beside other libcurls
	@scripts/linking/run.py

check-consumer: deps-test ## build and run an app by the README's own manifest, from a tagged clone, beside other packages; its plugin
	@scripts/consumer/run.py
	$(SWIFT) build $(STRICT) --product ssl-pinning
	@scripts/consumer/plugin.py

check-package: package ## as root: install the package where no Swift is, under a systemd of its own, and try it
	@scripts/package-test.py .build-release/deb/*.deb

docs: deps-test ## build the documentation into .build/docs; every warning is an error
	$(SWIFT) build $(STRICT) --target SslPinningTesting
	@scripts/docs/build.py --self-test
	@scripts/docs/build.py

api: deps-test ## write the public surface into docs/api.md; `make docs` compares it
	$(SWIFT) build $(STRICT) --target SslPinningTesting
	@scripts/docs/api.py --write

bench: deps-bench ## measure all beside peers, write docs/performance.md; ARGS='--rows client,verdict --rounds 3'
	@Benchmarks/bench.sh $(ARGS)

bench-smoke: deps-bench ## a minute of that: fails below the floors of Benchmarks/floors.json
	@Benchmarks/bench.sh --smoke

clean: ## remove everything that was built or installed into .build
	rm -rf .build .build-release
