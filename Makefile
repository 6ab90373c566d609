# Every target installs its own requirements. `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 3000
# How many tests run at once, each worker with a sandbox of its own. The quick tests wait a lot, for servers, deadlines
# and processes: more workers than cores. End-to-end tests take more memory.
WORKERS ?= $(shell n=$$(nproc); echo $$((n > 5 ? 8 : n + 2)))
E2E_WORKERS ?= $(shell n=$$(nproc); echo $$((n < 3 ? 3 : n > 4 ? 4 : n)))
COUNT ?= 1000
SEED ?= 0
N ?= 100
INSTALLED := $(VENV)/.installed
# to import a folder for nothing but to deselect its tests takes seconds in every worker
QUICK := -m "not e2e and not soak" --ignore tests/e2e --ignore tests/soak

export DARKROOM_HOME ?= $(CURDIR)/data
# what must be local lies in the home, unless that is a URL
LOCAL := $(or $(DARKROOM_LOCAL),$(if $(findstring ://,$(DARKROOM_HOME)),$(CURDIR)/data,$(DARKROOM_HOME)))
export DAGSTER_HOME ?= $(abspath $(LOCAL))/dagster
export HF_HUB_DISABLE_TELEMETRY := 1
export DO_NOT_TRACK := 1
# where it is set, every process of a test compiles the project again: two fifths of the time to collect them
export PYTHONDONTWRITEBYTECODE :=
# the workers share the cores: more threads in each would only wait for one another, at full load
test coverage mutants e2e soak: export OMP_NUM_THREADS := 1
test coverage mutants e2e soak: export OPENBLAS_NUM_THREADS := 1

.PHONY: help install packages demo annotate test coverage mutants fuzz e2e soak adapters lint types checks docs bench ui summary screenshots lock clean

help: ## List all targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(INSTALLED) ## Create .venv with the exact versions of requirements.lock

# torch first and with pip: where a CPU build lies on the machine, pip takes it and uv then keeps it
$(INSTALLED): pyproject.toml requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep '^uv==' requirements.lock)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep '^torch==' requirements.lock)"
	$(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode --requirement requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@

packages: ## Install the Debian packages of the end-to-end tests
	scripts/install_debian_packages chromium postgresql slurmctld slurmd slurm-client munge

demo: $(INSTALLED) ## Run the full pipeline end to end on the bundled data
	$(BIN)/darkroom demo

test: $(INSTALLED) ## Run the quick tests, which need only Python
	$(BIN)/pytest $(QUICK) -n $(WORKERS) --dist worksteal

coverage: $(INSTALLED) ## Run the same tests with line and branch coverage (takes about 1.5 times as long)
	$(BIN)/pytest $(QUICK) -n $(WORKERS) --dist worksteal --cov --cov-report=term:skip-covered

# Cosmic Ray in an environment beside .venv, which no test needs
mutants: $(INSTALLED) ## Change the code at random places and see whether a test fails (N=100 SEED=0; takes an hour)
	$(BIN)/uv run --quiet --no-project --python $(BIN)/python --with 'cosmic-ray>=8.7,<9' \
		python -m tests.mutants $(abspath $(BIN)/python) $(N) $(SEED)

fuzz: $(INSTALLED) ## Fuzz the sandbox: code against plain Python, files, replies (COUNT=1000 SEED=0)
	$(BIN)/python -m tests.sandbox.fuzz --count $(COUNT) --seed $(SEED)

# by file: the tests of a file share one demo and one server
e2e: $(INSTALLED) packages ## Run the end-to-end tests, one of each thing that a user does (installs Debian packages, starts servers)
	$(BIN)/pytest -m "e2e and not soak" -n $(E2E_WORKERS) --dist loadfile --timeout 1800 --durations 10

soak: $(INSTALLED) packages ## Run chaos, kills, clusters, the full lists of attacks and cases, ten times the examples (hours)
	$(BIN)/pytest -m soak -n $(E2E_WORKERS) --dist loadfile --timeout 7200 --durations 20
	$(BIN)/pytest -m "hypothesis and not e2e and not soak" --hypothesis-profile thorough -n $(WORKERS) --dist worksteal

adapters: $(INSTALLED) ## Run other programs against the services, each in an environment of its own (takes long)
	$(BIN)/pytest tests/adapters --timeout 3600

lint: checks types ## Check format, lint, import contracts, vocabulary, Dagster definitions, types

types: $(INSTALLED) ## Check types, which takes most of lint's time
	$(BIN)/mypy

checks: $(INSTALLED) ## Check all of lint but the types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/python -m scripts.vocabulary
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/dg check defs

docs: $(INSTALLED) ## Build the documentation site into site/ (strict: a broken link fails)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(INSTALLED) ## Measure the sandbox against plain Python on this machine (about eight minutes)
	$(BIN)/python -m measurements.sandbox

ui: $(INSTALLED) ## Start the Dagster UI on http://127.0.0.1:3000 (PORT=… for another port)
	$(BIN)/darkroom ui --port $(PORT)

annotate: $(INSTALLED) ## Start Label Studio for human annotation (stop it: .venv/bin/darkroom annotate down)
	$(BIN)/darkroom annotate up

summary: $(INSTALLED) ## Print accepted and rejected rows, curves, cost and output folders of DARKROOM_HOME
	$(BIN)/darkroom summary

screenshots: $(INSTALLED) ## Take the screenshots of the README: UI, trajectory, annotation (needs chromium)
	scripts/install_debian_packages chromium
	$(BIN)/python scripts/screenshots.py docs/images
	$(BIN)/python -m scripts.annotation_screenshots docs/images

lock: ## Resolve pyproject.toml into requirements.lock (versions only)
	scripts/lock $(PYTHON)

clean: ## Remove .venv; the data is kept
	rm -rf $(VENV)
