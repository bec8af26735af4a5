# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN    := .venv/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check -q install
COMPILE := uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -q

.PHONY: demo test quick engines web lint docs site bench hard coverage wheel lock clean

demo: .venv/demo.stamp
	$(BIN)/reticent demo --out demo
	@echo "To use the command reticent in this terminal: . $(BIN)/activate"

test: .venv/dev.stamp            ## SIMD=off: as on a plain processor, without its vector units
	$(if $(filter off,$(SIMD)),$(BIN)/python tools/simd_off.py) $(BIN)/python -m pytest -n auto --dist worksteal

# The parts that can be tested without a whole release, and the rules of the house. What this leaves out is in CONTRIBUTING.md.
QUICK := $(addprefix tests/,noise privacy sensitivity query schema prepare refine models missing synth) \
         tests/test_direction.py tests/test_house.py tests/test_references.py
LONG  := *_laws.py *_coins.py *_audit.py *_crash.py *_trace.py *_trainings.py *_scale.py *_effort.py *ledger_many.py *ledger_model.py *ledger_server.py

quick: .venv/dev.stamp           ## a minute or so between two edits; no reason to land anything
	$(BIN)/python -m pytest -n auto --dist worksteal $(QUICK) $(foreach each,$(LONG),--ignore-glob '$(each)')

engines: .venv/dev.stamp          ## PostgreSQL and Spark, where a server and Java are installed: their drivers have locks of their own
	-$(PIP) --require-hashes --no-deps -r requirements/engines.lock
	-$(PIP) --require-hashes -r requirements/spark.lock
	$(BIN)/python -m pytest -n 0 tests/engine/postgres tests/privacy -k "postgres or server or served" --durations=10
	$(BIN)/python -m pytest -n 0 tests/engine/conformance tests/engine/spark --durations=10

web: .venv/dev.stamp              ## the curator's desk, in a real browser where one is installed: locks of their own
	-$(PIP) --require-hashes -r requirements/web.lock
	-$(PIP) --require-hashes --no-deps -r requirements/browser.lock
	$(BIN)/python -m pytest -n 0 tests/web

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/dev.stamp            ## the examples run first, then the pages are built, warnings being errors
	$(BIN)/python -m pytest tests/test_docs.py
	$(MAKE) site

site: .venv/dev.stamp            ## the pages alone
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir site

bench: .venv/dev.stamp
	$(BIN)/python -m bench

hard: .venv/dev.stamp            ## the ledger, in the numbers of the threat list: needs strace, takes some minutes
	RETICENT_FAULTS=all RETICENT_KILLS=200 RETICENT_ROUNDS=20 \
	$(BIN)/python -m pytest tests/privacy -k ledger -n 0 -q -s

coverage: .venv/dev.stamp        ## which entries of the threat catalogue have a test
	$(BIN)/python tests/catalogue.py

wheel: .venv/dev.stamp           ## sdist and wheel in dist/, built twice and alike in every bit, with the bill of materials inside
	$(BIN)/python tools/sbom.py --check
	$(BIN)/python tools/wheel.py dist

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/demo.stamp: pyproject.toml requirements/demo.lock | .venv/bin/python
	$(PIP) --require-hashes -r requirements/demo.lock
	$(PIP) --no-deps --no-build-isolation -e .
	touch $@

.venv/dev.stamp: pyproject.toml requirements/dev.lock | .venv/bin/python
	$(PIP) --require-hashes -r requirements/dev.lock
	$(PIP) --no-deps --no-build-isolation -e .
	touch $@ .venv/demo.stamp

lock: .venv/dev.stamp            ## needs uv; writes both lock files and the bill of materials anew
	$(COMPILE) --extra report --group build pyproject.toml -o requirements/demo.lock
	$(COMPILE) --extra report --extra files --extra judge --group dev pyproject.toml -o requirements/dev.lock
	printf 'psycopg==3.3.8\npsycopg-binary==3.3.8\nadbc-driver-postgresql==1.13.0\nadbc-driver-manager==1.13.0\n' | $(COMPILE) --no-deps - -o requirements/engines.lock
	echo 'pyspark>=4.1,<5' | $(COMPILE) - -o requirements/spark.lock
	$(COMPILE) --extra web pyproject.toml -c requirements/dev.lock -o requirements/web.lock
	echo 'playwright>=1.65,<2' | $(COMPILE) -c requirements/dev.lock - -o requirements/browser.lock
	$(BIN)/python tools/sbom.py

clean:
	rm -rf .venv demo dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
