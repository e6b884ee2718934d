# Needs Python 3.11 or later and make; everything else goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help fuzz test test-all test-lowest lint docs reproduce bench bench-kernels wheel clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

test: lint ## Lint, type check and run all tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

test-all: lint ## The same with the slow tests: clusters, extreme problems
	SKADMM_TESTS=all $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

N ?= 5000
FIRST ?= 0

fuzz: $(STAMP) ## Solve N random problems of every kind and compare with CVXPY (make fuzz N=5000 FIRST=1000000)
	$(BIN)/python tests/support/random_problems.py --first $(FIRST) --count $(N)

# The core with nothing optional: tests that need no optional package. Kernels have a folder of their own: two versions
# of Numba that run at the same time would replace each other's files.
LOWEST := .venv-lowest
FLOORS = $$($(PYTHON) -c "import tomllib; print(*(text.replace('>=', '==') for text in \
	tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies']))")
LOWEST_TESTS := tests/unit/test_losses.py tests/unit/test_problem.py tests/unit/test_compile.py \
	tests/equivalence/test_newton_admm.py tests/equivalence/test_block_path.py tests/integration/test_path.py

test-lowest: ## Run tests of the core with the lowest versions of its dependencies, in an environment of its own
	@test -x $(LOWEST)/bin/pip || $(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --editable . $(FLOORS) pytest hypothesis
	NUMBA_CACHE_DIR=$(CURDIR)/$(LOWEST)/kernels $(LOWEST)/bin/python -m pytest $(LOWEST_TESTS)

lint: $(STAMP) ## Check style, format, layers and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

docs: $(STAMP) ## Build the documentation into build/docs; installs Sphinx the first time
	@$(BIN)/python -c 'import sphinx_gallery' 2>/dev/null || $(BIN)/python -m pip install --quiet --editable '.[docs]'
	$(BIN)/python -m sphinx -W --keep-going -b html -d build/doctrees docs build/docs
	@echo 'Open build/docs/index.html'

reproduce: $(STAMP) ## Compare the methods; report, figures, tables and trace go to results/
	$(BIN)/skadmm reproduce --quick

bench: $(STAMP) ## A short run of the benchopt benchmark; installs benchopt the first time
	@$(BIN)/python -c 'import benchopt' 2>/dev/null || $(BIN)/python -m pip install --quiet --editable '.[bench]'
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/benchopt run benchmarks/generalized_lasso \
		-d simulated -s skadmm-auto -s skadmm-sa-iu-admm -s skadmm-svrg-iu-admm -s condat-vu -s cvxpy -s lbfgs-smoothed \
		--timeout 10 -n 40 -r 1 --no-display

bench-kernels: $(STAMP) ## Measure the compiled kernels
	$(BIN)/python benchmarks/kernels.py

wheel: $(STAMP) ## Build a wheel with compiled kernels for this platform and Python into dist/; takes minutes
	@$(BIN)/python -c 'import build.__main__' 2>/dev/null || $(BIN)/python -m pip install --quiet build
	SKADMM_SHIP_KERNELS=1 $(BIN)/python -m build --wheel

clean: ## Remove the virtual environment, caches and results
	rm -rf $(VENV) $(LOWEST) results build dist docs/api docs/gallery docs/_figures .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp holds a checksum of pyproject.toml, so that only a change of its content installs again.
CHECKSUM := $(shell cksum pyproject.toml | cut -d ' ' -f 1-2)
ifneq ($(CHECKSUM),$(shell cat $(STAMP) 2>/dev/null))
.PHONY: $(STAMP)
endif

$(STAMP):
	@test -x $(BIN)/pip || $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "skadmm needs Python 3.11 or later, and $(PYTHON) is not. Name another: make PYTHON=python3.12" >&2; \
		exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@echo '$(CHECKSUM)' > $@
