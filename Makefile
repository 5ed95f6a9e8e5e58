PYTHON ?= python3
JOBS ?= 2
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: demo test test-all lint judge

demo: $(INSTALLED)
	$(BIN)/python -m kdsl build kernels --target all --check --out build/demo
	$(BIN)/python -m kdsl verify kernels --target all

test: lint
	$(BIN)/python -m pytest -n $(JOBS) -m "not slow"

test-all: lint
	$(BIN)/python -m pytest -n $(JOBS)

# Does the judge find what is wrong? Its last line is the mutation score.
judge: $(INSTALLED)
	$(BIN)/python -m bench.judge

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict kdsl backends kernels

# Made again when the dependencies, the entry points or the package mapping change.
$(INSTALLED): pyproject.toml setup.py
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("kdsl needs Python 3.11 or newer: make PYTHON=...")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --editable '.[all,test]'
	touch $@
