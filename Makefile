# Every target sets up what it needs: only Python 3.11 and make are asked for.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
LAB := $(BIN)/python -m tensorlace_lab
LOCK := $(BIN)/uv pip compile -q --generate-hashes --no-emit-index-url --no-header --python-version 3.11 --no-emit-package tensorlace pyproject.toml
export SCIPY_ARRAY_API = 1

.PHONY: help setup demo test lint docs bench quality tables trust pages lock clean
.DEFAULT_GOAL := help

help: ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# Environments for the demo, the tests and the benchmarks, each from a lock with hashes.
$(VENV)/.demo: requirements/demo.txt pyproject.toml lab/pyproject.toml
	@$(PYTHON) -m venv $(VENV)
	@echo "setting up: installing locked requirements for the demo ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/demo.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e . -e lab
	@touch $@

$(VENV)/.test: requirements/test.txt pyproject.toml lab/pyproject.toml
	@$(PYTHON) -m venv $(VENV)
	@echo "setting up: installing locked requirements for the tests ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/test.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e . -e lab
	@touch $@ $(VENV)/.demo

$(VENV)/.bench: requirements/bench.txt pyproject.toml lab/pyproject.toml
	@$(PYTHON) -m venv $(VENV)
	@echo "setting up: installing locked requirements for the benchmarks ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/bench.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e . -e lab
	@touch $@ $(VENV)/.test $(VENV)/.demo

setup: $(VENV)/.test ## Make .venv with everything that work on the code needs

demo: $(VENV)/.demo ## Fit two data sets, print a table, save a figure in out/
	$(BIN)/tensorlace demo

test: $(VENV)/.test lint ## Lint and run the whole suite
	$(BIN)/python -m pytest -q -n 2 --dist loadfile --durations=8

lint: $(VENV)/.test ## ruff, import contracts and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

docs: $(VENV)/.test ## Build the documentation into out/docs; a warning is an error
	$(BIN)/python -m sphinx -W --keep-going -q docs out/docs
	@echo "open out/docs/index.html"

bench: $(VENV)/.bench ## Measure seconds and memory (an hour), then write the pages
	$(LAB) sweep first_fit scaling predict peers airline gram passes budget pages

quality: $(VENV)/.bench ## The default on the paper's nine sets (hours), then the pages
	$(LAB) quality pages

tables: $(VENV)/.bench ## The default on Friedman's functions and flights, then the pages
	$(LAB) tables pages

trust: $(VENV)/.bench ## Coverage, shift, outliers on real tables (days), then the pages
	$(LAB) trust pages

pages: $(VENV)/.test ## All pages of results, from lab/results/
	$(LAB) pages

lock: ## Renew requirements/*.txt from pyproject.toml and lab/pyproject.toml
	$(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install -q uv
	$(LOCK) --extra test --extra docs --extra build -o requirements/test.txt
	$(LOCK) --extra plots --extra cli --extra build -c requirements/test.txt -o requirements/demo.txt
	$(LOCK) --extra test --extra docs --extra build lab/pyproject.toml --extra bench -o requirements/bench.txt

clean: ## Remove what was built
	rm -rf $(VENV) out docs/examples docs/sg_execution_times.rst .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
