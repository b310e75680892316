# On a fresh machine with Python 3.11 or newer, git and make, every target installs what it needs into .venv.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test test-all e2e-hosts lint format bench readme schemas clean

# the main job, on a recorded session
demo: .venv/core
	$(BIN)/ecm-rules run fixtures/transcripts/02_claude_compact_boundary.jsonl

# every test, on every core
test: .venv/dev
	$(BIN)/python -m pytest -n auto

# and the same on every other supported Python that is here
test-all: test
	@for version in 3.11 3.12 3.13 3.14; do \
	  python=$$(command -v python$$version) && $$python -c '' 2>/dev/null || continue; \
	  $(BIN)/python -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] == '$$version')" || continue; \
	  echo "python$$version"; \
	  $$python -m venv .venv/$$version && .venv/$$version/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev]' \
	    && .venv/$$version/bin/python -m pytest -n auto || exit 1; \
	done

# our hooks in the real clients; HOST=… for some of them; see e2e/README.md
e2e-hosts: .venv/dev
	$(BIN)/python -m e2e.harness.setup $(HOST)
	$(BIN)/python -m pytest e2e -rs $(addprefix --host ,$(HOST))

# style, types, floors
lint: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: .venv/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# side by side with peers; see bench/README.md
bench: .venv/bench
	@for script in bench/decide.py bench/hook.py bench/meter.py bench/load.py bench/analysis.py bench/lifecycle.py; do $(BIN)/python $$script $(ARGS) || exit 1; done

# the tables of README.md, from the tables
readme: .venv/core
	$(BIN)/python docs/render_readme.py

# the JSON Schemas of rules/schemas/json/, from rules/schemas/ and the vocabulary
schemas: .venv/core
	@for name in $(filter-out parts,$(basename $(notdir $(wildcard rules/schemas/*.yaml)))); do \
	  $(BIN)/ecm-rules schema $$name > rules/schemas/json/$$name.json || exit 1; \
	done

clean:
	rm -rf .venv dist build

.venv/core: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(PIP) -e .
	@touch $@

.venv/dev: .venv/core
	@$(PIP) -e '.[dev]'
	@touch $@

.venv/bench: .venv/core
	@$(PIP) -e '.[bench]'
	@touch $@
