# `make demo` and `make test` do all of their own set-up: a .venv, made once, remade when requirements.lock changes.
# `PYTHON=3.12`, a release, is for `make matrix`: the .venv is not made of it.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
INTERPRETER := $(if $(filter 3.%,$(PYTHON)),python3,$(PYTHON))

# One thread per process: the tests run two processes, and small models do not gain from more.
export OMP_NUM_THREADS ?= 1

.PHONY: demo test dist tour docs lint format bench cases mutants sweep-ops sweep-edges fuzz soak large matrix matrix-lowest clean

demo: $(READY)
	$(BIN)/python -m examples.demo

test: lint
	$(BIN)/python -m pytest -n 2 -q

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	$(BIN)/python -m benchmarks.bench
	$(BIN)/python -m benchmarks.graph_quality --keep
	$(BIN)/python -m benchmarks.graph_quality --growth --keep

# A model of 6 GB, exported and verified; needs 16 GB of memory and 12 GB of disk.
large: $(READY)
	$(BIN)/python -m benchmarks.large

cases: $(READY)
	$(BIN)/python -m benchmarks.cases

# Half an hour; a run that was interrupted goes on where it stopped. `MUTANTS="--only thresholds --no-controls"` for a part.
mutants: $(READY)
	$(BIN)/python -m benchmarks.mutants -j 2 $(MUTANTS)

# Hours, all in all; a run that was interrupted goes on where it stopped. `SWEEP="--dtypes float32 --sizes fixed"` for a part.
sweep-ops: $(READY)
	$(BIN)/python -m benchmarks.ops $(SWEEP)

# An hour or two; goes on where it stopped. `EDGES="--dtypes int8"` for a part.
sweep-edges: $(READY)
	$(BIN)/python -m benchmarks.edges $(EDGES)

# make matrix TORCH="2.12 2.14" PYTHON=3.12: releases of torch in venvs of their own, 1 GB to fetch and a quarter of an hour
# each. Goes on where it stopped; MATRIX="--fresh" measures again, MATRIX="--parts canary seeds" a part.
TORCH ?= 2.10 2.11 2.12 2.13 2.14 2.15
matrix: $(READY)
	$(BIN)/python -m benchmarks.matrix --torch $(TORCH) $(if $(filter 3.%,$(PYTHON)),--python $(PYTHON)) $(MATRIX)

# The lowest versions of all other dependencies, and the files that we write in other runtimes.
matrix-lowest: $(READY)
	$(BIN)/python -m benchmarks.matrix --lowest --runtimes 1.17 1.20 1.23 newest $(MATRIX)

# make fuzz N=3000 SEED=7: that many random programs; failing ones are kept in build/fuzz
N ?= 300
SEED ?= 0
fuzz: $(READY)
	$(BIN)/python -m tests.fuzz.run --count $(N) --seed $(SEED) --report benchmarks/results/fuzz.md

# An hour or two; a part by itself with SOAK="--part kills"
soak: $(READY)
	$(BIN)/python -m benchmarks.soak $(SOAK)

# Wheel and sdist, each installed into an empty venv and tried there; nothing is fetched.
dist: $(READY)
	rm -rf dist
	$(BIN)/python -m tests.release.installed dist

# The twenty journeys of examples/tour on the installed wheel: some minutes. `make tour TOUR="3 8"` for some of them.
tour: dist
	$(BIN)/python -m examples.tour build/installed-whl/bin $(TOUR)

# The site in build/site, from docs/ and what the code says of itself; the notebooks are run. In a venv of its own, which sees
# the packages of .venv.
docs: $(READY) build/docs-venv/ready
	build/docs-venv/bin/python docs/site.py build/docs --execute
	NO_MKDOCS_2_WARNING=1 build/docs-venv/bin/python -m mkdocs build -q

build/docs-venv/ready: docs/requirements.lock
	rm -rf build/docs-venv
	$(BIN)/python -m venv build/docs-venv
	cd build/docs-venv/lib/python3.*/site-packages && $(CURDIR)/$(BIN)/python -c \
		'import sysconfig; print(sysconfig.get_path("purelib")); print("$(CURDIR)/src")' > packages.pth
	build/docs-venv/bin/python -m pip install -q --no-deps -r docs/requirements.lock
	@touch $@

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

# The lock is compared by content, so that a checkout which only touches its date does not cost a new .venv. It is copied
# into the .venv last: a set-up that was interrupted is begun again.
# torch goes first and alone, and the package is installed without dependencies and without build isolation, so that
# nothing fetches torch a second time.
$(READY): requirements.lock pyproject.toml
	@if ! cmp -s requirements.lock .venv/requirements.lock; then \
		set -e; echo "making .venv (once; a few minutes)"; \
		$(INTERPRETER) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "trueport needs Python 3.11 or newer")'; \
		rm -rf .venv; $(INTERPRETER) -m venv .venv; \
		$(BIN)/python -m pip install -q -c requirements.lock "$$(grep '^torch==' requirements.lock)"; \
		$(BIN)/python -m pip install -q -r requirements.lock; \
		cp requirements.lock .venv/requirements.lock; \
	fi
	$(BIN)/python -m pip install -q --no-deps --no-build-isolation --editable .
	@touch $(READY)
