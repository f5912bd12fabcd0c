# Two commands do everything on a fresh machine with Python >= 3.11: `make demo` and `make test`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-thorough test-browser test-torch lint docs clean

# Modules are compiled once, when first imported, and not again by each of the many processes that tests start.
unexport PYTHONDONTWRITEBYTECODE

demo: $(VENV)/installed
	$(BIN)/mmaformal diff ampere hopper HMMA.16816.F32

test: $(VENV)/tools
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-thorough: $(VENV)/tools
	$(BIN)/python -m pytest -n 2 --dist loadfile --thorough

test-browser: $(VENV)/browser
	MMAFORMAL_NPM=$(VENV)/npm/node_modules $(BIN)/python -m pytest -m "slow or not slow" tests/site/test_browser.py

# Any PyTorch will do: `make test-torch TORCH=…`, where this one would bring CUDA along.
TORCH ?= torch==2.13.0

test-torch: $(VENV)/torch
	$(BIN)/python -m pytest -n 2 --dist loadfile tests/pytorch

lint: $(VENV)/tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/lint_installed.py
	$(BIN)/python tools/house.py --check

docs: $(VENV)/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

# Most of the time of a fresh install is spent on byte-compiling packages: each module is compiled when it is first
# imported instead.  The pip of $(PYTHON) installs (--python needs pip 22.3); where there is none, the environment's own.
PIP = $$($(PYTHON) -m pip --python $(BIN)/python --version >/dev/null 2>&1 && echo $(PYTHON) -m pip --python $(BIN)/python || \
	echo $(BIN)/python -m pip)
INSTALL = $(PIP) install --quiet --disable-pip-version-check --no-compile

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed: make PYTHON=python3.12 …")'
	@echo "making $(VENV) and installing mmaformal into it"
	@$(PYTHON) -m venv --without-pip $(VENV)
	@$(PYTHON) -m pip --python $@ --version >/dev/null 2>&1 || $@ -m ensurepip

$(VENV)/installed: pyproject.toml | $(BIN)/python
	@$(INSTALL) pip --editable .
	@touch $@

$(VENV)/tools: pyproject.toml | $(BIN)/python
	@$(INSTALL) pip --editable '.[test,lint]'
	@touch $@ $(VENV)/installed

# What a browser runs, for the tests of the site: Chromium itself is the system's.
$(VENV)/browser: $(VENV)/tools
	@$(INSTALL) playwright
	@npm install --silent --prefix $(VENV)/npm pyodide z3-solver axe-core
	@touch $@

# Triton's interpreter runs, on processors, the kernels that are made for GPUs.
$(VENV)/torch: $(VENV)/tools
	@$(INSTALL) '$(TORCH)' 'triton>=3.2' 'scikit-learn>=1.3' 'matplotlib>=3.8'
	@touch $@

$(VENV)/docs: pyproject.toml | $(BIN)/python
	@$(INSTALL) pip --editable '.[docs]'
	@touch $@ $(VENV)/installed
