# What people and CI run. `make demo` and `make test` need only Python >= 3.11 and pip.

VENV := .venv
BIN := $(VENV)/bin
# By file, so that what a file's tests share is made once.
PYTEST_ARGS ?= -n 2 --dist loadfile
DEMO := $(BIN)/ornstein train --data digits --out runs/demo --overwrite
BENCHMARKS := sde image_step networks samplers implicit latent whitened service torch_bridge
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check \
	--constraint constraints.txt

# Tests on real data sets run where the folder exists, and are skipped elsewhere.
SHARED_DATA := $(abspath $(wildcard ../shared/data))
ifneq ($(SHARED_DATA),)
export ORNSTEIN_DATA ?= $(SHARED_DATA)
endif

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow guides lint format types pages docs bench clean

help: ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' Makefile | expand -t 12

demo: $(VENV)/.stamp-core ## train an SDE-BNN on real digits and judge it: minutes
	$(DEMO)

test: $(VENV)/.stamp-test ## the default suite
	$(BIN)/python -m pytest $(PYTEST_ARGS)

test-slow: $(VENV)/.stamp-test ## what the default suite leaves out
	$(BIN)/python -m pytest -m slow $(PYTEST_ARGS)

guides: $(VENV)/.stamp-test ## the code of the guide's pages, with budgets cut
	$(BIN)/python -m pytest -m slow tests/test_guides.py $(PYTEST_ARGS) --dist load

lint: $(VENV)/.stamp-dev ## ruff and codespell
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/codespell

format: $(VENV)/.stamp-dev ## let ruff rewrite the files
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

types: $(VENV)/.stamp-dev $(VENV)/.stamp-test ## pyright
	$(BIN)/pyright --pythonpath $(BIN)/python

pages: $(VENV)/.stamp-core ## write README.md and docs/results from results/*.json
	$(BIN)/python -m docs.render
	$(BIN)/python -m docs.figures

docs: $(VENV)/.stamp-docs ## build the documentation into site/, warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(VENV)/.stamp-bench ## time ours against other libraries and plain loops
	set -e; for name in $(BENCHMARKS); do $(BIN)/python -m benchmarks.$$name; done

clean: ## forget the environment and what was built
	rm -rf $(VENV) site dist .pytest_cache .ruff_cache

# An interrupted `venv` leaves a folder without pip: only the stamp says it is whole.
$(VENV)/.stamp-venv:
	@for python in python3 python3.13 python3.12 python3.11 ""; do \
		[ -n "$$python" ] || break; \
		$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
			2>/dev/null && break; \
	done; \
	if [ -z "$$python" ]; then \
		echo "No Python >= 3.11 on PATH: install one (https://www.python.org)" \
			"and run make again." >&2; \
		exit 1; \
	fi; \
	echo "Making $(VENV) with $$python"; \
	$$python -m venv --clear $(VENV)
	@touch $@

# _version.py, because the installed metadata holds a copy of the version.
SOURCES := pyproject.toml constraints.txt src/ornstein/_version.py

$(VENV)/.stamp-core: $(VENV)/.stamp-venv $(SOURCES)
	@echo "Installing ornstein: a few minutes on a fresh machine"
	@$(INSTALL) --editable .
	@touch $@

$(VENV)/.stamp-%: $(VENV)/.stamp-venv $(SOURCES)
	@echo "Installing ornstein[$*]: a few minutes on a fresh machine"
	@$(INSTALL) --editable '.[$*]'
	@touch $@
