# Everything sets itself up: a virtual environment in .venv, then the named job.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LOWEST := .venv-lowest
WHEEL := .venv-wheel
ZIG := .venv-zig
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal
# Areas whose tests tell most per second; the rest are sweeps over shapes, types and orders.
# The generated pages are left out: each is made anew, one of them from every published time.
QUICK := tests/chips tests/docs tests/frontends/capi tests/isa/program tests/isa/scalar \
  tests/isa/test_catalogue.py tests/isa/test_inventory.py tests/isa/mte/test_copies.py \
  tests/isa/cube/test_mad.py tests/machine/memory tests/machine/sanitize tests/seeds \
  tests/test_api.py tests/test_codes.py tests/test_dtypes.py tests/test_layers.py \
  tests/test_layouts.py \
  tests/tiling/model tests/tiling/rules tests/timing/pipes tests/workflows/test_check.py
# Tests start many processes: modules are compiled once, and not into the source folders.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX := $(CURDIR)/$(VENV)/bytecode

.PHONY: demo quick test test-all ledger fuzz lowest zig lint types format bench docs site changelog dist clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --group dev --editable .
	touch $(STAMP)

demo: $(STAMP)  ## a real layer's product: planned, run, verified, timed
	$(BIN)/python examples/llm_layer.py

quick: $(STAMP) lint  ## for every edit: style, and the tests that tell most per second
	$(PYTEST) $(QUICK) --ignore tests/seeds/test_docs.py

# Types are checked beside the tests: mypy has one process.
test: $(STAMP) lint  ## every check but the exhaustive sweeps
	$(BIN)/mypy & types=$$!; $(PYTEST); tests=$$?; wait $$types && exit $$tests

test-all: $(STAMP) lint types ledger  ## the sweeps too
	$(PYTEST) -m "sweep or not sweep"

ROWS ?=
ledger: $(STAMP)  ## every clause of the seeds, broken: a test of its row must fail; ROWS=002/t3
	cd tests && ../$(BIN)/python -m seeds.trial $(ROWS)

SEED ?= 0
fuzz: $(STAMP)  ## hostile files, stores, disks and random requests: what was tried, what failed
	PYTHONPATH=tests $(BIN)/python -m fuzz --seed $(SEED)

lowest: pyproject.toml  ## quick's tests and README with the lowest versions allowed
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python tools/packaging/lowest.py > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python -m pip install --quiet --constraint $(LOWEST)/constraints.txt \
	  pytest pytest-xdist hypothesis grimp towncrier --editable .
	$(LOWEST)/bin/python -m pytest -n auto --dist worksteal $(QUICK) tests/test_cli.py \
	  --ignore tests/seeds/test_docs.py

zig: pyproject.toml  ## a C++ example with the compiler of a wheel, where there is no other
	$(PYTHON) -m venv --clear $(ZIG)
	$(ZIG)/bin/python -m pip install --quiet --editable ".[compiler]"
	PATH=/nowhere CUBECORE_CXX= CUBECORE_CACHE=$(CURDIR)/$(ZIG)/cache $(ZIG)/bin/python tools/packaging/wheel_compiler.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)  ## figures as JSON on standard output
	$(BIN)/python benchmarks/plan_and_time.py
	$(BIN)/python benchmarks/run_products.py
	$(BIN)/python benchmarks/plan.py
	$(BIN)/python benchmarks/timing.py
	$(BIN)/python benchmarks/regret.py
	$(BIN)/python benchmarks/checks.py
	$(BIN)/python benchmarks/run_kernels.py
	$(BIN)/python benchmarks/run_equal_cores.py
	$(BIN)/python benchmarks/instructions.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/cpp.py
	$(BIN)/python benchmarks/registers.py
	$(BIN)/python benchmarks/threads.py

docs: $(STAMP)  ## refresh what is generated under docs/
	$(BIN)/python -m tools.pages.docs
	$(BIN)/python -m tools.pages.console

site: $(STAMP)  ## the documentation site, English and Chinese, in site/; a warning is an error
	$(BIN)/python -m pip install --quiet --group docs
	$(BIN)/python -m tools.pages.site

changelog: $(STAMP)  ## what the next release's section says; VERSION=x.y.z writes it
	$(BIN)/towncrier build $(if $(VERSION),--yes --version $(VERSION),--draft --version next)

dist: $(STAMP)  ## wheel and sdist, checked; README's blocks from the wheel in a clean environment
	rm -rf dist
	$(BIN)/python -m pip install --quiet --group dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	$(PYTHON) -m venv --clear $(WHEEL)
	$(WHEEL)/bin/python -m pip install --quiet dist/*.whl
	$(WHEEL)/bin/python -m tools.packaging.wheel

clean:
	rm -rf dist site $(WHEEL) $(ZIG) $(VENV) $(LOWEST) .mypy_cache .ruff_cache .pytest_cache
