# Two commands do everything: `make demo` and `make test`. Each sets up what it needs, with nothing but Python.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$p; break; fi; done)
VENV ?= .venv
BIN := $(VENV)/bin
# Many tests wait for processes, so one worker more than there are cores.
JOBS ?= $(shell $(PYTHON) -c 'import os; print(min(8, (os.cpu_count() or 1) + 1))')
CODE := src tests tools benchmarks
ARGS ?=
# Weights that are fetched for tests and benchmarks go with the environment, not to where yours are.
MODELS := DONEWHEN_MODELS=$(abspath $(VENV))/models
INSTALL = if command -v uv >/dev/null 2>&1; then uv pip install --quiet --python $(BIN)/python $(1); \
	else $(BIN)/python -m pip install --quiet --disable-pip-version-check $(1); fi

# Hundreds of interpreters are started: none of them should compile everything again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help docs-site demo demo-model test test-scenes test-install test-projects test-runtimes runtimes coverage test-units sentences pages test-model soak mutants lint format bench bench-learn bench-strength bench-judge bench-learn-local docs clean

help:  ## Show what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/:/' | column -t -s ':'

docs-site: $(VENV)/.site  ## Build the docs as a site in build/docs-site/site, with search, and check its links
	@$(BIN)/python -m tools.docs_site $(VENV)/site/bin/python

demo: $(VENV)/.page  ## Watch an agent cheat and be refused, and a judge learn from people (two minutes; ARGS=--fast)
	@rm -rf build/demo
	@$(BIN)/donewhen demo --folder build/demo $(ARGS)

demo-model: $(VENV)/.weights  ## The same story with a model on this machine (1.1 GB, once; then some minutes)
	@rm -rf build/demo-model
	@$(MODELS) $(BIN)/donewhen demo --model local --folder build/demo-model $(ARGS)

PYTEST = $(MODELS) $(BIN)/python -m pytest -n $(JOBS) --dist worksteal
# Tracing takes nearly as long as the tests themselves, so only the tests of the rooms with a floor are traced.
DECIDING := tests/completion tests/jobs tests/room tests/judging tests/learning tests/spec tests/reports tests/verifying \
	tests/environments tests/adversarial tests/controls tests/isolation tests/signs tests/review \
	tests/cli/test_audit_mission_verb.py tests/cli/test_replay_verb.py
COVERAGE ?=
NO_INSTALLS := -m 'not installs and not projects and not runtimes' --scenes=sample
test: $(VENV)/.clients  ## Run the tests (ARGS='-k name' for some; COVERAGE=yes to measure); what can't be installed is skipped loudly
	@if [ -z "$(COVERAGE)" ]; then $(PYTEST) $(NO_INSTALLS) $(ARGS); else $(MAKE) coverage && \
	$(PYTEST) $(NO_INSTALLS) $(addprefix --ignore=,$(DECIDING)) $(ARGS); fi

test-scenes: $(VENV)/.clients  ## Run all tests that play whole commands on whole projects (make test runs a sample of them; minutes)
	@$(PYTEST) -m 'scenes and not installs and not projects and not runtimes' $(ARGS)

test-install: $(VENV)/.clients  ## Install donewhen in empty environments, as users, GitHub's runners and pre-commit do, and use it
	@$(MODELS) $(BIN)/python -m pytest -m installs tests/packaging tests/verifying $(ARGS)

coverage: $(VENV)/.clients  ## Measure how much of the deciding rooms their own tests cover, and fail below the floors
	@$(PYTEST) $(NO_INSTALLS) --cov --cov-report= $(DECIDING)
	@$(BIN)/python -m tools.coverage_floor

BASICS := tests/completion tests/config tests/foundation tests/judging tests/runtime tests/spec tests/cli/test_every_verb.py
test-units: $(VENV)/.units  ## Run the tests that CI runs on other Pythons: the specifications, every verb, the rooms without processes
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m 'not installs and not projects and not runtimes and not claude and not codex and not gemini and not copilot' $(BASICS) $(ARGS)

sentences: $(VENV)/.test $(VENV)/.clients  ## Store the product's new wording in the snapshots of the tests (ARGS=tests/jobs for one folder)
	@$(MODELS) $(BIN)/python -m pytest -n $(JOBS) --rewrite-sentences $(ARGS)
	@git --no-pager diff --stat -- '*/sentences.txt'

pages: $(VENV)/.clients  ## Bring the output that the pages show up to date with what the commands print now
	@DONEWHEN_REWRITE_PAGES=1 $(MODELS) $(BIN)/python -m pytest -n $(JOBS) tests/docs/test_docs.py $(ARGS)
	@git --no-pager diff --stat -- '*.md'

test-projects: $(VENV)/.clients  ## The tests of six real projects from the package indexes, in rooms at each level of isolation (minutes)
	@$(BIN)/python -m pytest -m projects tests/real_projects $(ARGS)

runtimes: $(VENV)/.clients  ## Play all scenes with the real clients of agent runtimes, and write the table of the docs (minutes)
	@$(BIN)/python -m tools.runtime_scenes $(ARGS)

test-runtimes: $(VENV)/.clients  ## Compare the table of agent runtimes in the docs with the real clients (minutes)
	@$(BIN)/python -m pytest -m runtimes tests/runtimes $(ARGS)

test-model: $(VENV)/.model  ## The tests of the local model with the weights that can judge (1.1 GB, once)
	@$(MODELS) DONEWHEN_TEST_WEIGHTS=qwen2.5-coder-1.5b $(BIN)/python -m pytest tests/integration/test_local_weights.py $(ARGS)

soak: $(VENV)/.test  ## Kill and race writers of jobs for minutes (make test has a short version)
	@$(BIN)/python -m tools.soak $(ARGS)

mutants: $(VENV)/.test  ## Change the deciding code in 40 small ways, and see whether a test notices (an hour; ARGS=--list)
	@$(BIN)/python -m tools.mutants $(ARGS)

lint: $(VENV)/.lint  ## Format, lint, types, layers
	@$(BIN)/ruff format --check --quiet $(CODE) || { echo "Run: make format"; exit 1; }
	@$(BIN)/ruff check --quiet $(CODE)
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

format: $(VENV)/.lint  ## Put the code in shape
	@$(BIN)/ruff check --fix --quiet $(CODE) ; $(BIN)/ruff format --quiet $(CODE)

bench: $(VENV)/.demo  ## Print the ratios: import and hook cost, plan checking, dispatching
	@$(BIN)/python -m benchmarks

DATA ?= ../shared/data
bench-learn: $(VENV)/.demo  ## Learn from the tickets in DATA, and print what comes of it beside word counts
	@$(BIN)/python -m benchmarks.learning $(DATA)

bench-strength: $(VENV)/.demo  ## Print how well the probes of passing tests find wrong solutions, from those in DATA (some minutes)
	@$(BIN)/python -m benchmarks.strength $(DATA)

bench-judge: $(VENV)/.model  ## Print how fast models judge: on this machine with and without prefix reuse, over the wire, on Ray
	@$(MODELS) $(BIN)/python -m benchmarks.local_judging
	@$(BIN)/python -m benchmarks.throughput
	@$(BIN)/python -m benchmarks.on_ray

bench-learn-local: $(VENV)/.model  ## Learn with the local model from made-up tickets and from those in DATA (an hour; goes on where it was cut off)
	@$(MODELS) $(BIN)/python -m benchmarks.learning_local $(DATA)

docs: $(VENV)/.demo  ## Write the pages and pictures that are made from the code
	@$(BIN)/python -m tools.write_docs
	@$(BIN)/python -m tools.write_plugin

clean:  ## Remove what was set up or built
	rm -rf $(VENV) build dist .coverage .hypothesis .mypy_cache .ruff_cache .import_linter_cache

$(VENV)/bin/python:
	@if [ -z "$(PYTHON)" ]; then echo "donewhen needs Python 3.11 or later; none was found. Try: make PYTHON=/path/to/python"; exit 1; fi
	@echo "Setting up $(VENV) (once; a minute at most) ..."
	@$(PYTHON) -m venv $(VENV) || { echo "The venv module is missing: on Debian, install python3-venv."; exit 1; }

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml
	@$(call INSTALL,-e .) && touch $@

$(VENV)/.page: $(VENV)/.demo
	@$(call INSTALL,-e '.[web]') && touch $@ || echo "LOUD: starlette and uvicorn can't be installed; the page can NOT be served."

$(VENV)/.weights: $(VENV)/.page
	@$(call INSTALL,-e '.[local]') && $(MODELS) $(BIN)/donewhen models fetch && touch $@

$(VENV)/.test: $(VENV)/bin/python pyproject.toml
	@$(call INSTALL,-e '.[test]') && touch $@

# An environment of its own: the tests don't need it.
$(VENV)/.site: | $(VENV)/bin/python
	@$(PYTHON) -m venv --clear $(VENV)/site
	@$(VENV)/site/bin/python -m pip install --quiet --disable-pip-version-check 'zensical>=0.0.73'
	@touch $@

$(VENV)/.units: $(VENV)/bin/python pyproject.toml
	@$(call INSTALL,-e '.[test$(comma)web$(comma)mcp$(comma)openai$(comma)anthropic]') && touch $@

$(VENV)/.lint: $(VENV)/bin/python pyproject.toml
	@$(call INSTALL,-e '.[test$(comma)lint]') && touch $@

$(VENV)/.model: $(VENV)/.test
	@$(call INSTALL,-e '.[local$(comma)openai$(comma)ray]')
	@$(MODELS) $(BIN)/donewhen models fetch && touch $@

# The real clients that the integration tests drive on loopback, and a browser, in one go and beside each other. Where one
# can't be had, each is tried by itself, and the tests of the one that is missing say so and are skipped.
$(VENV)/.clients: $(VENV)/bin/python pyproject.toml
	@echo "Fetching the agent runtimes for the integration tests (once; optional) ..."
	@$(call CODEX_CLI) & $(call NODE_CLIENTS) & { $(call CHROMIUM); $(call BUBBLEWRAP); $(call GIT_CRYPT); } & \
	{ $(call INSTALL,-e '.[test$(comma)lint$(comma)claude$(comma)openai$(comma)anthropic$(comma)web$(comma)mcp$(comma)ray$(comma)local]' $(TOOLS)) 2>/dev/null \
		&& touch $(VENV)/.demo && touch $(VENV)/.page $(VENV)/.test $(VENV)/.lint \
		|| $(MAKE) --no-print-directory VENV=$(VENV) one-by-one; } && \
	{ $(MODELS) $(BIN)/donewhen models fetch --quiet smollm2-135m \
		|| echo "LOUD: the weights can't be had; a model on this machine will NOT be tested."; } && \
	wait && touch $@

.PHONY: one-by-one
one-by-one: $(VENV)/.test
	@$(call INSTALL,-e '.[claude]') || echo "LOUD: claude-agent-sdk can't be installed; the real Claude client will NOT be tested."
	@$(call INSTALL,-e '.[openai$(comma)anthropic]') || echo "LOUD: openai and anthropic can't be installed; models over the wire will NOT be tested."
	@$(call INSTALL,-e '.[web]') || echo "LOUD: starlette and uvicorn can't be installed; the page will NOT be tested."
	@$(call INSTALL,-e '.[mcp]') || echo "LOUD: mcp can't be installed; the tools for agents will NOT be tested."
	@$(call INSTALL,-e '.[ray]') || echo "LOUD: ray can't be installed; many machines will NOT be tested."
	@$(call INSTALL,-e '.[local]') || echo "LOUD: xllamacpp can't be installed; a model on this machine will NOT be tested."
	@for tool in $(TOOLS); do { $(call INSTALL,$$tool); } \
		|| echo "LOUD: $$tool can't be installed; what it looks at will NOT be tested."; done

TOOLS := playwright pre-commit ruff
CODEX_CLI = if ! command -v npm >/dev/null 2>&1; then echo "LOUD: there is no npm; the Codex CLI will NOT be tested."; \
	else npm install --silent --no-fund --no-audit --prefix $(VENV)/codex @openai/codex@$(CODEX) >/dev/null 2>&1 \
	|| echo "LOUD: the Codex CLI can't be installed; it will NOT be tested."; fi
NODE_CLIENTS = if ! command -v npm >/dev/null 2>&1; then echo "LOUD: there is no npm; Gemini CLI and Copilot CLI will NOT be tested."; \
	else npm install --silent --no-fund --no-audit --prefix $(VENV)/node-clients @google/gemini-cli@$(GEMINI) @github/copilot@$(COPILOT) \
	>/dev/null 2>&1 || echo "LOUD: Gemini CLI and Copilot CLI can't be installed; they will NOT be tested."; fi
CHROMIUM = if ! command -v chromium-headless-shell >/dev/null 2>&1; then \
	{ [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq chromium-headless-shell; } >/dev/null 2>&1 \
	|| command -v chromium >/dev/null 2>&1 \
	|| echo "LOUD: Chromium can't be installed; the pages will NOT be looked at."; fi
GIT_CRYPT = if ! command -v git-crypt >/dev/null 2>&1; then \
	{ [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq git-crypt; } >/dev/null 2>&1 \
	|| echo "LOUD: git-crypt can't be installed; files that it encrypts will NOT be tested."; fi
BUBBLEWRAP = if ! command -v bwrap >/dev/null 2>&1; then \
	{ [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq bubblewrap; } >/dev/null 2>&1 \
	|| echo "LOUD: bubblewrap can't be installed; checks in namespaces of their own will NOT be tested."; fi
CODEX := 0.166.0
GEMINI := 0.61.0
COPILOT := 1.0.102
comma := ,
