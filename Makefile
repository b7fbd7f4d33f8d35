# One command for each job; every target prepares what it needs. CI calls `make check`, then `make test-cluster`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
LOCK   := requirements/dev.lock
READY  := $(VENV)/.ready
DOCS   := .venv-docs
AUDIT  := .venv-audit
# numba does not notice an edit of a kernel that another file calls: other sources, another cache
export NUMBA_CACHE_DIR := $(CURDIR)/$(VENV)/kernels/$(shell find src/factorwise/kernels -name '*.py' 2>/dev/null | LC_ALL=C sort | xargs cat 2>/dev/null | cksum | tr ' ' '-')
# packages are installed without bytecode, which their first use writes: else every process makes it anew
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test coverage fuzz mutations test-slow test-cluster check audit format lint types layers bench experiments docs pictures lock clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

setup: $(READY)  ## a virtual environment in .venv with the package and its development tools

# --no-deps: the locks are whole, and pip would take the newest of what is asked for with an extra, and stop
$(READY): $(LOCK) pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 15) else "factorwise needs Python 3.11 to 3.14, this is %s: run make PYTHON=python3.12 ..." % sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes -r $(LOCK)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: setup  ## the main job end to end on generated data; writes demo/report.html
	$(BIN)/factorwise demo

test: setup  ## the tests
	$(BIN)/python -m pytest -m "not slow and not cluster" -n auto --dist loadfile $(ARGS)

# not a part of check: tracing makes Python 3.11, and with it compiling, twice as slow
coverage: setup  ## the tests, and which lines they do not reach; compiled code counts as not reached
	$(BIN)/python -m pytest -m "not slow and not cluster" -n auto --dist loadfile --cov --cov-report=term:skip-covered $(ARGS)

fuzz: setup  ## use 200,000 files that were tampered with, without bounds checks and with them
	$(BIN)/python tests/tampering.py $(ARGS)
	NUMBA_CACHE_DIR=$$(mktemp -d) FACTORWISE_CACHE=$$(mktemp -d) NUMBA_BOUNDSCHECK=1 $(BIN)/python tests/tampering.py $(ARGS)

mutations: setup  ## change formulas one at a time, and see whether tests notice; takes hours
	$(BIN)/python tests/mutations.py $(ARGS)

test-slow: setup  ## long statistical runs: many seeds, and kernels with bounds checks in a cache of their own
	FACTORWISE_TEST_SEEDS=20 $(BIN)/python -m pytest -m "not cluster" $(ARGS)
	NUMBA_CACHE_DIR=$$(mktemp -d) FACTORWISE_CACHE=$$(mktemp -d) NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -m "not slow and not cluster" $(ARGS)

# in a network namespace of its own: Ray would otherwise use an address that others can reach
APART  := unshare --user --map-root-user --net
test-cluster: setup  ## the tests that start Ray clusters, with no network but loopback
	@$(APART) true 2>/dev/null || { echo "make test-cluster needs network namespaces without privileges, and 'unshare --user --net' failed: allow them (sysctl kernel.unprivileged_userns_clone=1, or a container with CAP_SYS_ADMIN)" >&2; exit 1; }
	timeout --kill-after=20 540 $(APART) $(BIN)/python tests/cluster/loopback.py $(BIN)/python -m pytest -m cluster tests/cluster $(ARGS)

check: lint types layers test  ## everything that must pass before a change lands, but for test-cluster

format: setup  ## format, and repair what can be repaired
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: setup
	$(BIN)/mypy

layers: setup
	$(BIN)/lint-imports

bench: setup  ## side by side with the peers, each in an environment of its own
	$(BIN)/python benchmarks/run_all.py $(ARGS)

experiments: setup  ## the tables and figures of the papers
	$(BIN)/python experiments/run_all.py $(ARGS)

# in an environment of its own: what builds the site is no part of development, and nothing of it is shipped
docs: $(DOCS)/.ready  ## the documentation as a site in site/, without a warning
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict

pictures: setup  ## photograph what the tutorials write, for the pages; needs Chromium
	$(BIN)/python docs/pictures.py

$(DOCS)/.ready: requirements/docs.lock
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/docs.lock
	@touch $@

# in an environment of its own: what looks up vulnerabilities is no part of development
audit: $(AUDIT)/.ready  ## known vulnerabilities of the locked versions, where the registry offers such data
	$(PYTHON) .ci/audit.py $(AUDIT)/bin/pip-audit requirements/dev.lock requirements/docs.lock requirements/audit.lock

$(AUDIT)/.ready: requirements/audit.lock
	$(PYTHON) -m venv $(AUDIT)
	$(AUDIT)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/audit.lock
	@touch $@

lock: setup  ## choose new versions: rewrites requirements/*.lock
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --group dev pyproject.toml -o $(LOCK)
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --group docs -o requirements/docs.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --group audit -o requirements/audit.lock

clean:
	rm -rf $(VENV) $(DOCS) $(AUDIT) site .pytest_cache .mypy_cache .ruff_cache .hypothesis demo
