# Everything a newcomer types: `make demo` and `make test`. Both install what they need first.
SHELL := /bin/bash
.ONESHELL:
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help install demo docs test test-all lint bench

PYTHON ?= python3
VENV ?= .venv
PYTEST_ARGS ?=
# One thread a process: fairseq on two cores is faster that way, and tests run two at a time.
export OMP_NUM_THREADS ?= 1
BIN := $(abspath $(VENV))/bin
STAMP := $(VENV)/.installed
TORCH := torch==2.13.0
FAIRSEQ := fairseq-fixed==0.12.3.1

help:
	@echo "make install   set up $(VENV) (minutes the first time, seconds after)"
	@echo "make demo      train, translate and score a syntax-aware Transformer (3 minutes)"
	@echo "make docs      build the site into site/, to be opened from there"
	@echo "make test      units and a tiny run of every system (four minutes on two cores);  make test-all   all but the slow tests"
	@echo "make lint      check the style"
	@echo "make bench     print the speed and memory ratios; BENCH=\"--json NEW --compare OLD\""

install: $(STAMP)

$(STAMP): setup.py pyproject.toml Makefile fairseq_syntax/version.py
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if v >= (3, 11) else f"make install: Python 3.11 or newer is needed, found {v[0]}.{v[1]}; set PYTHON=/path/to/python3.11")'
	test -x $(BIN)/python || { echo "== creating $(VENV)"; $(PYTHON) -m venv $(VENV); }
	pip() { $(BIN)/python -m pip --disable-pip-version-check --quiet "$$@"; }
	echo "== build tools"; pip install 'setuptools>=77' wheel cython 'numpy>=2,<3'
	echo "== $(TORCH)"; $(BIN)/python -c 'import torch' 2>/dev/null || pip install $(TORCH)
	if $(BIN)/python -c 'import fairseq' 2>/dev/null; then echo "== fairseq: found, kept"
	else echo "== $(FAIRSEQ) (compiles for a minute or two)"; pip install --no-build-isolation $(FAIRSEQ); fi
	echo "== fairseq-syntax and its tools"; pip install --no-build-isolation -e '.[dev]'
	touch $(STAMP)
	echo "== ready: . $(VENV)/bin/activate"

demo: install
	PATH="$(BIN):$$PATH" bash examples/quickstart.sh

docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	echo "site/index.html"

test: install
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m 'not full' $(PYTEST_ARGS)

test-all: install
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/mypy
	$(BIN)/shellcheck examples/*.sh examples/*/*.sh

bench: install
	PATH="$(BIN):$$PATH" $(BIN)/python benchmarks/run.py $(BENCH)
