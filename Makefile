# Everything a newcomer types: `make demo` and `make test`. Both install what they need first.
SHELL := /bin/bash
.ONESHELL:
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help install demo docs test test-all test-isa lint bench lock release

PYTHON ?= python3
VENV ?= .venv
PYTEST_ARGS ?=
# One thread a process: fairseq on two cores is faster that way, and tests run two at a time.
export OMP_NUM_THREADS ?= 1
# relative, so that the checkout may lie in a folder with a space
BIN := $(VENV)/bin
# without a GPU: TORCH="torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"
TORCH ?= torch==2.13.0
# ve-fairseq or fairseq-fixed: compile this one, whatever binaries there are
FAIRSEQ ?=

help:
	@echo "make install   set up $(VENV) for users (a minute or two the first time)"
	@echo "make demo      train, translate and score a syntax-aware Transformer (3 minutes)"
	@echo "make docs      build the site into site/, to be opened from there"
	@echo "make test      units and a tiny run of every system (three minutes on two cores);  make test-all   all but the slow tests"
	@echo "make test-isa  tests of numbers as on older processors (two minutes)"
	@echo "make lint      check the style"
	@echo "make bench     print the speed and memory ratios; BENCH=\"--json NEW\""
	@echo "make release   build the sdist and the wheel into dist/, and try the wheel in an empty environment"

# What is pinned is installed by uv, which is many times faster than pip; torch by pip, which knows of local wheels and indexes.
# Bytecode is written when a module is first imported, unless that is forbidden.
define GET
pip() { $(BIN)/python -m pip --disable-pip-version-check --quiet "$$@"; }
command -v uv > $(VENV)/uv || { pip install uv && echo $(BIN)/uv > $(VENV)/uv; } || echo > $(VENV)/uv
uv=$$(cat $(VENV)/uv)
get() { $${uv:-pip} $${uv:+pip} install $${uv:+--python $(BIN)/python --quiet $${PYTHONDONTWRITEBYTECODE:+--compile-bytecode}} "$$@"; }
# the requirements whose names match $$2; all others if $$1 is 1
those() { awk -v not="$$1" -v names="$$2" '/^[^ ]/ {keep = $$0 ~ "^(" names ")==" ? !not : not} keep' requirements.txt; }
fairseq='ve-fairseq|fairseq-fixed'
endef

install: $(VENV)/.installed

$(VENV)/.installed: requirements.txt setup.py pyproject.toml Makefile fairseq_syntax/version.py
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if v >= (3, 11) else f"make install: Python 3.11 or newer is needed, found {v[0]}.{v[1]}; set PYTHON=/path/to/python3.11")'
	test -x $(BIN)/python || { echo "== creating $(VENV)"; $(PYTHON) -m venv $(VENV); }
	$(GET)
	echo "== $(TORCH)"; $(BIN)/python -c 'import torch' 2>/dev/null || pip install $(TORCH)
	echo "== $$(those 1 "$$fairseq" | grep -c '^[^ ]') packages"
	those 1 "$$fairseq" > $(VENV)/packages.txt; get --no-deps --require-hashes -r $(VENV)/packages.txt
	if $(BIN)/python -c 'import fairseq' 2>/dev/null; then echo "== fairseq: found, kept"
	elif [ -n "$(FAIRSEQ)" ]; then
		echo "== $(FAIRSEQ) (compiles for minutes)"; those 0 "$(FAIRSEQ)" | sed 's/ ;.*/ \\/' > $(VENV)/fairseq.txt
		get --no-deps --require-hashes --no-build-isolation --no-binary $(FAIRSEQ) -r $(VENV)/fairseq.txt
	else
		echo "== fairseq"; those 0 "$$fairseq" > $(VENV)/fairseq.txt
		get --no-deps --require-hashes --no-build-isolation -r $(VENV)/fairseq.txt
	fi
	# a file of fairseq warns while it is compiled
	$(BIN)/python -W ignore -m compileall -qq "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/fairseq" || true
	echo "== fairseq-syntax"; get --no-deps -e .
	touch $@
	echo "== ready: . $(VENV)/bin/activate"

# what contributors need: tests, style, docs
DEV := $(VENV)/.developing

$(DEV): $(VENV)/.installed requirements-dev.txt
	@$(GET)
	echo "== $$(grep -c '^[^ ]' requirements-dev.txt) packages for tests, style and docs"
	get --no-deps --require-hashes -r requirements-dev.txt
	touch $@

demo: install
	PATH="$$(cd $(BIN) && pwd):$$PATH" bash examples/quickstart.sh

docs: $(DEV)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	echo "site/index.html"

test: $(DEV)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m 'not full' $(PYTEST_ARGS)

test-all: $(DEV)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

# torch and oneDNN as on a processor with SSE4.1, and as on one with AVX2; in both, all tests that compute with torch
WITHOUT_TORCH := $(addprefix latent_tree/test_,drawing.py rewards.py task.py transitions.py tree_files.py) lgp/test_schedules.py parser/test_task.py
test-isa: $(DEV)
	$(BIN)/python -m pytest -m 'not full' --dist each --tx popen//env:ONEDNN_MAX_CPU_ISA=SSE41//env:ATEN_CPU_CAPABILITY=default \
		--tx popen//env:ONEDNN_MAX_CPU_ISA=AVX2//env:ATEN_CPU_CAPABILITY=avx2 $(PYTEST_ARGS) \
		$(addprefix --ignore=tests/unit/systems/,$(WITHOUT_TORCH)) \
		tests/contract/test_architectures.py tests/golden tests/unit/systems tests/unit/trees/test_matrix_tree.py

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/mypy
	$(BIN)/shellcheck examples/*.sh examples/*/*.sh

bench: $(DEV)
	PATH="$$(cd $(BIN) && pwd):$$PATH" $(BIN)/python benchmarks/run.py $(BENCH)

# Pin again what pyproject.toml asks for; torch, and what it brings for GPUs, is not pinned here.
lock:
	@compile() { uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --excludes <(echo torch) "$$@"; }
	compile --upgrade pyproject.toml -o requirements.txt
	compile --extra dev -c requirements.txt pyproject.toml -o requirements-dev.txt $$(sed -n 's/^\([^ ]*\)==.*/--no-emit-package \1/p' requirements.txt | sort -u)

release: $(DEV)
	rm -rf dist
	DIST=dist $(BIN)/python -m pytest --run-slow tests/contract/test_packaging.py
