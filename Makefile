# Every target does its own set-up: it needs Rust and CPython >= 3.11, and says so when they are
# missing. Tools and the built package go into .venv; the stamps there make a second run quick.

VENV := .venv
BIN := $(VENV)/bin

# One environment for every cargo and maturin call, so that none rebuilds what another built.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
export PYO3_BUILD_EXTENSION_MODULE := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
unexport PYTHONHOME PYTHONPATH CONDA_PREFIX

# cust, which fhelium-cust joins, links a library that other systems do not have.
WORKSPACE := --workspace
ifneq ($(shell uname -s),Linux)
WORKSPACE += --exclude fhelium-cust
endif

# What the extension module is built from.
SOURCES := Cargo.toml Cargo.lock pyproject.toml \
	$(shell find crates kernels \( -name '*.rs' -o -name Cargo.toml -o -name '*.cu' -o -name '*.cuh' \) 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help demo test test-rust test-python lint format docs bench build clean check-tools

help:
	@echo "make demo     build, then score handwritten digits under encryption; DEVICE=cuda on a GPU"
	@echo "make test     build, then run every test, Rust and Python"
	@echo "make lint     formatting, clippy, ruff, mypy and the stubs"
	@echo "make format   format Rust and Python"
	@echo "make docs     build the documentation into site/"
	@echo "make bench    run the benchmarks"
	@echo "make clean    remove everything that was built"

DEVICE ?= cpu

demo: build
	$(BIN)/python examples/digits.py --device $(DEVICE)

test: test-rust test-python

test-rust: $(VENV)/.tools
	@scripts/check-rust.sh
	@if cargo nextest --version >/dev/null 2>&1; then \
		echo "cargo nextest run $(WORKSPACE)" && cargo nextest run --locked $(WORKSPACE); \
	else \
		echo "cargo test $(WORKSPACE)" && cargo test --locked $(WORKSPACE) --lib --bins --tests --examples; \
	fi
	cargo test --locked $(WORKSPACE) --doc

# Where there is no GPU, what only a GPU has is tested with a driver that runs the kernels on the CPU.
test-python: build
	$(BIN)/python -m pytest
	@if [ "$$(uname)" = Linux ] && ! $(BIN)/python -c 'import fhelium; exit(fhelium.build_info()["cuda"]["problem"] is not None)'; then \
		echo "pytest tests/cuda on an emulated driver" && \
		LD_LIBRARY_PATH=$$(cargo run --locked --quiet -p fhelium-cuda --example emulated_driver) $(BIN)/python -m pytest -m "not slow" tests/cuda; \
	fi

# clippy stands first: it finds most mistakes soonest. stubtest needs the built module.
lint: build
	cargo fmt --all --check
	cargo clippy --locked $(WORKSPACE) --all-targets -- -D warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy python/fhelium
	$(BIN)/python -m mypy.stubtest fhelium._native

format: $(VENV)/.tools
	cargo fmt --all
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict

bench: build
	cargo bench --locked $(WORKSPACE) --benches
	$(BIN)/python benches/overhead.py
	$(BIN)/python benches/predictions.py

build: $(VENV)/.built

check-tools:
	@scripts/check-rust.sh
	@scripts/find-python.sh >/dev/null

# Remade when its Python is gone (then the link dangles, and to make the target does not exist).
$(BIN)/python:
	@python=$$(scripts/find-python.sh) && scripts/check-rust.sh && \
		echo "making $(VENV) with $$python" && "$$python" -m venv --clear $(VENV)

# pyproject.toml is the one list of tools: what the build requires, the package's dependencies, and
# the named extras.
requirements = $(BIN)/python -c "import sys, tomllib; t = tomllib.load(open('pyproject.toml', 'rb')); \
	extras = t['project']['optional-dependencies']; \
	lines = t['build-system']['requires'] + t['project']['dependencies'] + sum((extras[n] for n in sys.argv[1:]), []); \
	print('\n'.join(line for line in lines if not line.startswith('fhelium[')))"

$(VENV)/.tools: pyproject.toml | $(BIN)/python
	@echo "installing the Python tools"
	@$(requirements) demo dev > $(VENV)/tools.txt
	@$(BIN)/python -m pip install --quiet --requirement $(VENV)/tools.txt
	@touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	@$(requirements) docs > $(VENV)/docs.txt
	@$(BIN)/python -m pip install --quiet --requirement $(VENV)/docs.txt
	@touch $@

$(VENV)/.built: $(SOURCES) $(VENV)/.tools
	@scripts/check-rust.sh
	$(BIN)/maturin develop --release --locked
	@touch $@

clean:
	rm -rf $(VENV) target site output dist build python/fhelium/*.so
	find python tests examples -name __pycache__ -type d -prune -exec rm -rf {} +
