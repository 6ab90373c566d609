# Every target installs what it needs. `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 3000
# how many tests run at once; each worker has a sandbox of its own
WORKERS ?= logical --maxprocesses 4
INSTALLED := $(VENV)/.installed

export DARKROOM_HOME ?= $(CURDIR)/data
export DAGSTER_HOME ?= $(abspath $(DARKROOM_HOME))/dagster
export HF_HUB_DISABLE_TELEMETRY := 1
export DO_NOT_TRACK := 1

.PHONY: help install demo annotate test coverage e2e lint bench ui summary screenshots lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(INSTALLED) ## Create .venv and install exactly what requirements.lock says

# torch first and with pip: where a CPU build lies on the machine, pip takes it and uv then keeps it
$(INSTALLED): pyproject.toml requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep '^uv==' requirements.lock)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep '^torch==' requirements.lock)"
	$(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode --requirement requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@

demo: $(INSTALLED) ## The whole way once: real photographs to a trained checkpoint
	$(BIN)/darkroom demo

test: $(INSTALLED) ## The tests that need nothing but Python
	$(BIN)/pytest -m "not e2e" -n $(WORKERS)

coverage: $(INSTALLED) ## The same tests, and which lines and branches they reach (about half as long again)
	$(BIN)/pytest -m "not e2e" -n $(WORKERS) --cov --cov-report=term:skip-covered

# by file: a demo and a server that a file's tests share are made once
e2e: $(INSTALLED) ## Installs Debian packages, starts servers and tests against them
	scripts/install_debian_packages chromium postgresql slurmctld slurmd slurm-client munge
	$(BIN)/pytest -m e2e -n $(WORKERS) --dist loadfile --timeout 1800 --durations 10

lint: $(INSTALLED) ## Format, lint, types, import rule, definitions
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/dg check defs

bench: $(INSTALLED) ## Measure the sandbox on this machine against plain Python (about five minutes)
	$(BIN)/python -m benchmarks.sandbox

ui: $(INSTALLED) ## The Dagster UI on this graph, on http://127.0.0.1:3000 (PORT=… for another)
	$(BIN)/darkroom home
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/dg dev --host 127.0.0.1 --port $(PORT)

annotate: $(INSTALLED) ## Start Label Studio for human annotation (stop it: .venv/bin/darkroom annotate down)
	$(BIN)/darkroom annotate up

summary: $(INSTALLED) ## What is in DARKROOM_HOME: rows, rejects, curves, cost
	$(BIN)/darkroom summary

screenshots: $(INSTALLED) ## Take the README's pictures: the UI, a trajectory, annotation (needs chromium)
	scripts/install_debian_packages chromium
	$(BIN)/python scripts/screenshots.py docs/images
	$(BIN)/python -m scripts.annotation_screenshots docs/images

lock: ## Resolve pyproject.toml anew into requirements.lock (versions only)
	scripts/lock $(PYTHON)

clean: ## Remove .venv; data stays
	rm -rf $(VENV)
