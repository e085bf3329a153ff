# `make demo` and `make test` each work alone on a fresh machine with Python >= 3.11 and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Many small matrix products: threads of the numeric libraries would only get in each other's way.
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help demo test check format docs clean

help:  ## list what there is to make
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/demo.stamp  ## make the environment and run the demo
	$(BIN)/vfedsec demo

test: check  ## make the environment, then format check, lint, types, docs and tests

check: $(VENV)/dev.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python docs/generate.py --check
	$(BIN)/python -m pytest

format: $(VENV)/dev.stamp  ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/dev.stamp  ## write the generated parts of the documentation anew
	$(BIN)/python docs/generate.py
	$(BIN)/python -m vfedsec.cli.reference > docs/cli.md
	$(BIN)/python -m vfedsec.cli.file_reference > docs/files.md

clean:  ## remove the environment and caches
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# constraints.txt names the versions that are tested.
$(VENV)/demo.stamp: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --constraint constraints.txt --editable '.[plots]'
	touch $@

$(VENV)/dev.stamp: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --constraint constraints.txt --editable '.[dev]'
	touch $@
