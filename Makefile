# One target for each thing a person does. Each target installs what it needs first, and no more.
# Needs Python 3.11 or newer and make. Uses uv for the installs where uv is on the path.

PYTHON ?= python3
# worksteal keeps the tests of a file together, so its servers and compiled code are shared, and balances at the end.
# Three workers keep two cores busy: many tests wait for a server, a browser or a clock.
PYTEST_FLAGS ?= -n 3 --dist worksteal
SEEDS ?= 1000
GENERATOR ?= zensical

VENV := .venv
BIN := $(VENV)/bin

# Some containers stop Python from writing bytecode. Each of the many processes that tests start would then compile
# all that it imports. git ignores the files.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install test test-extra faults crashes paper demo serve check format bench bench-all docs pictures build requirements clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(VENV)/.research $(VENV)/.server ## set up .venv for simulation and for the server, with .venv/bin/partage

# What tests share: the files of Pyodide, and compiled kernels.
define prepare-tests
-@$(BIN)/python -m website.pyodide
-@$(BIN)/python -m tests.support.warm_up
endef

test: $(VENV)/.dev ## run the tests and doctests (PYTEST_FLAGS="-k settle" for some)
	$(prepare-tests)
	$(BIN)/python -m pytest $(PYTEST_FLAGS)

test-extra: $(VENV)/.dev ## run the long tests: many fault seeds, fuzzing, clean installs, clusters
	$(prepare-tests)
	$(BIN)/python -m pytest -m extra $(PYTEST_FLAGS)

faults: $(VENV)/.dev ## simulate the service with faults for SEEDS seeds (SEEDS=10000)
	$(BIN)/python -m tests.simulator.run --seeds $(SEEDS)

crashes: $(VENV)/.dev ## kill servers and databases, cut the power and fail writes, about half an hour (PART=cuts for some)
	$(BIN)/python -m tests.crashes $(PART)

paper: $(VENV)/.research ## run every experiment of the paper and write results/report.html
	$(BIN)/partage reproduce

demo: $(VENV)/.server ## watch a dozen bakers learn together on a live controller for about three minutes
	$(BIN)/partage demo

serve: $(VENV)/.server ## start a live controller on this machine
	$(BIN)/partage serve

check: $(VENV)/.dev ## check lint, format, types and the import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev ## format the code and apply the fixes of the linter
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev ## measure speed and memory and write results/bench.html (PART=engine for one part)
	$(BIN)/python -m bench.run $(PART) $(BENCH_FLAGS)

bench-all: $(VENV)/.dev ## measure also what takes long: Ray, fresh installs, long sweeps; and record the ratios of this version
	$(BIN)/python -m bench.run --all --record $(BENCH_FLAGS)

docs: $(VENV)/.docs ## build the site into build/website/site (PLAY=no leaves out the page that plays)
	$(BIN)/python -m website.build --generator $(GENERATOR) $(if $(filter no,$(PLAY)),--no-play)

pictures: $(VENV)/.dev ## draw the pictures of the live pages in docs/figures, with Chromium
	$(BIN)/python -m website.pictures

build: $(VENV)/.base ## build the wheel and the sdist into dist/
	$(BIN)/python -m hatchling build

# --- installs -------------------------------------------------------------------------------------------------------
# One environment with several levels: `make paper` installs the level research, and a later `make test` adds the rest.
# The file .venv/.LEVEL says that requirements/LEVEL.txt, which is pinned and hashed, is installed.

# What a level imports when it runs. Compiling the bytecode of every installed file would take longer than the rest of
# the install. Importing these modules once compiles what is used, so that later starts need not, even where bytecode
# cannot be written.
IMPORTS.base := partage.cli partage.client partage.ledger.verify
IMPORTS.research := jinja2 joblib matplotlib.pyplot numba polars partage.report.reproduce
IMPORTS.docs := jupytext latex2mathml.converter nbclient zensical
IMPORTS.server := partage.service.serve partage.service.http.app
compile-bytecode = $(BIN)/python -c 'import importlib, sys; list(map(importlib.import_module, sys.argv[1:]))' $(1)

# $(1): what to install, as flags of pip
pip-install = if command -v uv >/dev/null 2>&1; then \
    uv pip install --quiet --python $(BIN)/python $(1); \
else \
    $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check $(1); \
fi

$(VENV)/.base: pyproject.toml requirements/build.txt requirements/base.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo "Partage needs Python 3.11 or newer, and '$(PYTHON)' is missing or older. Name another one: make install PYTHON=python3.12" >&2; \
	    exit 1; }
	@if command -v uv >/dev/null 2>&1; then \
	    uv venv --quiet --allow-existing --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(VENV); \
	else \
	    $(PYTHON) -m venv $(VENV); \
	fi
	@$(call pip-install,--require-hashes -r requirements/build.txt -r requirements/base.txt)
	@$(call pip-install,--no-deps --no-build-isolation -e .)
	@$(call compile-bytecode,$(IMPORTS.base))
	@$(BIN)/partage --help >/dev/null
	@touch $@

$(VENV)/.%: requirements/%.txt $(VENV)/.base
	@$(call pip-install,--require-hashes -r $<)
	@$(call compile-bytecode,$(IMPORTS.$*))
	@touch $@

# Pins that still fit are kept; `make requirements UV_FLAGS=--upgrade` upgrades all. dev.txt has every level, and the
# others use its versions. requirements/build.txt has what [build-system] in pyproject.toml requires.
requirements: ## regenerate requirements/*.txt from pyproject.toml
	@set -e; uv=uv; if ! command -v uv >/dev/null 2>&1; then \
	    folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	    $(PYTHON) -m venv "$$folder"; \
	    "$$folder/bin/python" -m pip install --quiet --disable-pip-version-check uv; \
	    uv="$$folder/bin/uv"; \
	fi; \
	compile() { \
	    "$$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	        --no-emit-index-url --no-emit-find-links --custom-compile-command "make requirements" "$$@"; \
	}; \
	compile $(UV_FLAGS) --extra dev --output-file requirements/dev.txt pyproject.toml; \
	held="--constraint requirements/dev.txt"; \
	compile $$held --output-file requirements/base.txt pyproject.toml; \
	compile $$held --extra research --output-file requirements/research.txt pyproject.toml; \
	compile $$held --extra docs --output-file requirements/docs.txt pyproject.toml; \
	compile $$held --extra postgres --output-file requirements/server.txt pyproject.toml; \
	$(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
	    | compile $$held --output-file requirements/build.txt -

clean: ## remove .venv, builds and caches (results/ stays)
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests bench website -type d -name __pycache__ -prune -exec rm -rf {} +
