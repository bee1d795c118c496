# Every target sets up what it needs: the first call makes .venv and installs, later calls find it there.
PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
SETUP   := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test test-all lint format bench clean distclean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.runtime ## compile the digits model, run it on sample images, print the answers
	@$(BIN)/python models/digits/show.py

test: $(VENV)/.test ## run the tests (under ten minutes)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"

test-all: $(VENV)/.test $(VENV)/.train ## run all tests, also those with large models
	$(BIN)/python -m pytest

lint: $(VENV)/.test ## ruff (rules and format) and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.test ## rewrite the sources in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.test ## measure compile time, run time and arena against the others
	$(BIN)/python -m bench.arena
	$(BIN)/python -m bench.compile_time
	$(BIN)/python -m bench.fused_kernels
	$(BIN)/python -m bench.node_scaling
	$(BIN)/python -m bench.pattern_matching
	$(BIN)/python -m bench.run_time

clean: ## remove what builds and tests left behind
	rm -rf build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean ## also remove the virtual environment
	rm -rf $(VENV)

# The environment. An interrupted installation leaves no stamp, so the next call goes on with it.
$(VENV)/.created:
	@$(PYTHON) -c 'pass' 2>/dev/null || { echo "error: '$(PYTHON)' was not found. Install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: Python 3.11 or newer is needed; '$(PYTHON)' is $$($(PYTHON) -c 'import platform; print(platform.python_version())'). Name a newer one: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "error: '$(PYTHON)' lacks venv or ensurepip. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.runtime: $(VENV)/.created $(SETUP)
	@echo "installing the runtime dependencies into $(VENV)"
	@$(INSTALL) -e .
	@touch $@

$(VENV)/.test: $(VENV)/.created $(SETUP)
	@echo "installing the test dependencies into $(VENV)"
	@$(INSTALL) -e '.[test,bench]'
	@touch $@ $(VENV)/.runtime

$(VENV)/.train: $(VENV)/.created $(SETUP)
	@echo "installing what training needs into $(VENV)"
	@$(INSTALL) -e '.[train]'
	@touch $@ $(VENV)/.runtime
