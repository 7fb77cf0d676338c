# `make demo` and `make test` are all a new machine needs: each sets up .venv when it is missing.
PYTHON ?= python3
BIN := .venv/bin
SETUP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: fuzz demo test test-all lint docs clean help

help:
	@echo "make demo      make data, train SPaCQL, score it, write its report (minutes)"
	@echo "make test      lint and the quick tests"
	@echo "make test-all  lint and every test, the slow ones too"
	@echo "make fuzz      $(CASES) hostile files and arguments, one line per door"
	@echo "make lint      ruff and mypy"
	@echo "make docs      the documentation as a site, in site/"

.venv/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "spacql needs Python 3.11 or later; this is $$($(PYTHON) --version). Try: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv
	@touch $@

.venv/.installed: .venv/.made pyproject.toml constraints.txt
	$(SETUP) -e .
	@touch $@

.venv/.installed-dev: .venv/.made pyproject.toml constraints.txt
	$(SETUP) -e '.[dev]'
	@touch $@ .venv/.installed

demo: .venv/.installed
	$(BIN)/spacql demo

lint: .venv/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/pytest

test-all: lint
	$(BIN)/pytest -m ''

docs: .venv/.installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Open site/index.html"

# Hostile files and arguments at every door; CASES in all.
CASES ?= 15000
fuzz: .venv/.installed-dev
	$(BIN)/python tests/hostile/fuzz.py --cases $(CASES)

clean:
	rm -rf .venv build dist site .pytest_cache .mypy_cache .ruff_cache
