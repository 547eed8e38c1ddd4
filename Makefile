# One target for each thing a person does; each sets up what it needs first.
# Needs Python 3.11 or newer and make; uses uv for the set-up when uv is there.

PYTHON ?= python3
PYTEST_FLAGS ?= -n 2

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install test paper demo check format bench requirements clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(INSTALLED) ## set up .venv, with the command .venv/bin/partage

# The pinned and hashed requirements first, then Partage itself from this folder. What is never imported need not be
# compiled (--no-compile), which is half of the time; uv does the same.
$(INSTALLED): pyproject.toml requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo "Partage needs Python 3.11 or newer, and '$(PYTHON)' is missing or older; name another, as in: make install PYTHON=python3.12" >&2; \
	    exit 1; }
	@set -e; if command -v uv >/dev/null 2>&1; then \
	    uv venv --quiet --allow-existing --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(VENV); \
	    uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.txt; \
	    uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .; \
	else \
	    $(PYTHON) -m venv $(VENV); \
	    $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --require-hashes -r requirements.txt; \
	    $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .; \
	fi
	@touch $@

test: install ## run every test and doctest (PYTEST_FLAGS="-k settle" for some)
	$(BIN)/python -m pytest $(PYTEST_FLAGS)

paper: install ## play every experiment of the paper and write results/report.html
	$(BIN)/partage reproduce

demo: install ## watch a dozen bakers learn together on a live controller, some three minutes
	$(BIN)/partage demo

check: install ## lint, format check, types and the import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install ## put the code into the form that check asks for
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: install ## measure speed and memory (PART=engine or PART=service for one part)
	$(BIN)/python -m bench.run $(PART)

# Pins that still fit are kept; make requirements UV_FLAGS=--upgrade renews them all.
requirements: ## remake requirements.txt from pyproject.toml
	@set -e; uv=uv; if ! command -v uv >/dev/null 2>&1; then \
	    folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	    $(PYTHON) -m venv "$$folder"; \
	    "$$folder/bin/python" -m pip install --quiet --disable-pip-version-check uv; \
	    uv="$$folder/bin/uv"; \
	fi; \
	"$$uv" pip compile --quiet --universal --python-version 3.11 --extra dev --generate-hashes \
	    --no-emit-index-url --no-emit-find-links --no-annotate --custom-compile-command "make requirements" \
	    $(UV_FLAGS) --output-file requirements.txt pyproject.toml

clean: ## remove .venv, builds and caches (results/ stays)
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests bench -type d -name __pycache__ -prune -exec rm -rf {} +
