# Every target sets itself up: a fresh machine needs only Python 3.11+ and pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
# The benchmark sets, where a checkout has them beside it; tests that need them say so and skip otherwise.
ifneq ($(wildcard ../shared/data),)
export TUPLET_DATA ?= $(abspath ../shared/data)
endif

# The interpreter of `make test-oldest`, and those of `make test-pythons`.
OLDEST_PYTHON ?= python3.11
PYTHONS ?= $(shell for python in python3.11 python3.12 python3.13; do if $$python -c '' 2>/dev/null; then echo $$python; fi; done)

.PHONY: help setup kernels demo test test-fresh test-cpus test-slow test-deep test-cluster test-pythons test-oldest test-wheel check snapshot lint types imports format bench docs clean
help:            ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST)

setup: $(VENV)/ready  ## virtual environment with everything, versions pinned
$(VENV)/ready: pyproject.toml constraints.txt hatch_build.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

kernels: setup   ## compile the kernels ahead of time; after a change, else numba does it on first use
	rm -f src/tuplet/_compiled_*
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt setuptools
	$(BIN)/python hatch_build.py

demo: setup      ## fit, query and decide on the Palmer penguins
	@$(BIN)/tuplet demo

test: setup      ## the whole test suite
	$(BIN)/pytest -n $(WORKERS) -m "not slow and not deep and not cluster"

# SEED=... repeats a run.
SEED ?= $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
test-fresh: setup ## the property tests on fresh examples
	TUPLET_FRESH=1 $(BIN)/pytest -n $(WORKERS) -m "hypothesis and not slow and not deep and not cluster" --hypothesis-seed=$(SEED)

test-cpus: setup ## the test suite as other processors, thread counts and loads would run it; an hour and more
	$(BIN)/python tests/cpus.py

test-slow: setup ## the tests that take minutes
	$(BIN)/pytest -n $(WORKERS) -m slow

# torch comes first and pinned: the build for CPUs, where a newer one would bring gigabytes for graphics cards.
test-deep: setup ## networks as local models, with torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt 'torch==2.13.0'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt skorch
	$(BIN)/pytest -m deep tests/local/test_deep.py src/tuplet/local/deep

test-cluster: setup ## work on clusters of Dask and Ray on this machine
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt 'dask[distributed]' ray
	$(BIN)/pytest -m cluster tests/evaluate/test_clusters.py

test-pythons: ## the test suite with each interpreter of PYTHONS, in .venv-3.11, .venv-3.12 ...
	@echo "PYTHONS: $(or $(strip $(PYTHONS)),$(error No interpreter found; set PYTHONS))"
	@failed=; for python in $(PYTHONS); do \
	    version=$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])') \
	    && $(MAKE) test PYTHON=$$python VENV=.venv-$$version || failed="$$failed $$python"; \
	done; test -z "$$failed" || { echo "Failed with:$$failed"; exit 1; }

# Old versions of a library meet newer ones of what it requires itself and call what has been deprecated since:
# that is no fault of ours.
test-oldest: .venv-oldest/ready ## the test suite with the oldest supported versions
	.venv-oldest/bin/pytest -n $(WORKERS) -m "not slow and not deep and not cluster" -W ignore::DeprecationWarning
.venv-oldest/ready: pyproject.toml constraints-oldest.txt
	$(OLDEST_PYTHON) -m venv --clear .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints-oldest.txt --editable '.[test]'
	@touch $@

test-wheel: setup ## build sdist and wheel, install the wheel into an empty environment and use it there
	$(BIN)/python tests/wheel/build_and_use.py

check: lint types imports test  ## what CI runs

snapshot: setup  ## write the public names and signatures that a test compares
	$(BIN)/python tests/public.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
types: setup
	$(BIN)/mypy
imports: setup
	$(BIN)/lint-imports --no-cache
format: setup    ## let ruff write
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup     ## the benchmarks, printed as ratios to named rivals
	@$(BIN)/python benchmarks/run.py

docs: $(VENV)/docs ## the documentation, in docs/_build/html
	$(BIN)/sphinx-build -W --keep-going --quiet docs docs/_build/html
	@echo "docs/_build/html/index.html"
$(VENV)/docs: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	@touch $@

clean:           ## remove what the targets made
	rm -rf .venv .venv-* .pytest_cache .mypy_cache .ruff_cache .hypothesis docs/_build docs/api docs/gallery docs/results
