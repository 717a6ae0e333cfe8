# Every target does its own set-up in .venv; a fresh machine needs Python 3.11+, pip and make.
PYTHON ?= python3
BIN := .venv/bin
READERS := $(wildcard packages/unpoison-reader*)
EXTRAS := $(shell sed -n '/^\[project.optional-dependencies\]/,/^$$/s/^\([a-z-]*\) = .*/\1/p' pyproject.toml | paste -sd, -)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test seeded conformance mutants check check-model lint types imports speed format docs coverage dist sbom lowest lock clean

help: ## show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.venv/pip.stamp:
	$(PYTHON) -m venv .venv
	$(PIP) --upgrade "pip>=25.1"
	@touch $@

.venv/core.stamp: .venv/pip.stamp pyproject.toml constraints.txt
	$(PIP) --editable .
	@touch $@

.venv/test.stamp: .venv/core.stamp $(READERS:%=%/pyproject.toml)
	$(PIP) $(READERS:%=--editable %) --editable '.[reader,reader-base,serve,mcp,redteam,files]' --group test
	@touch $@

.venv/dev.stamp: .venv/core.stamp $(READERS:%=%/pyproject.toml)
	$(PIP) $(READERS:%=--editable %) --editable '.[$(EXTRAS)]' --group dev
	@touch $@

.venv/docs.stamp: .venv/core.stamp
	$(PIP) --editable '.[redteam]' --group docs
	@touch $@

demo: .venv/core.stamp ## attack and defend the built-in sample: no key, no download of models
	$(BIN)/unpoison demo

test: .venv/test.stamp ## run the tests; those that take long or need a package of another extra are skipped and counted
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

seeded: .venv/dev.stamp ## what a seed decides, on every kernel that the processor can run, with one thread and two
	$(BIN)/python tools/run_seeded.py

conformance: .venv/test.stamp ## the service against its description in /openapi.json, by schemathesis in a place of its own
	test -d build/schemathesis || $(PYTHON) -m venv build/schemathesis
	build/schemathesis/bin/python -m pip install --quiet --disable-pip-version-check schemathesis==4.32.5
	$(BIN)/python tools/conformance.py build/schemathesis/bin/schemathesis

mutants: .venv/dev.stamp ## change one place of a module, 200 times, and list the changes that its tests do not notice; takes an hour
	$(BIN)/python tools/mutants.py

check: export UNPOISON_NEEDS = all
check: export UNPOISON_FUZZ_SECONDS = 60
check: lint types imports speed test ## everything that has to be green, with every package installed: no test is skipped for one

check-model: export UNPOISON_MODEL_TESTS = 1
check-model: .venv/dev.stamp ## what needs a local language model, which it gets: 98 MB, and a server that it compiles
	$(BIN)/python -m benchmarks model get small
	$(BIN)/python -m pytest tests/test_local_model.py

lint: .venv/dev.stamp ## style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/dev.stamp ## mypy, strict
	$(BIN)/mypy

imports: .venv/dev.stamp ## the one-way rule of docs/architecture.md
	$(BIN)/lint-imports

speed: .venv/dev.stamp ## whole calls beside a fixed peer; fails where one takes twice what is recorded
	$(BIN)/python -m benchmarks speed_ratio

format: .venv/dev.stamp ## rewrite files in the house style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: .venv/docs.stamp ## the documentation as a site, in build/site; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

coverage: .venv/dev.stamp ## run all tests and name the lines of src that none of them ran; fails below 95 %
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

dist: .venv/pip.stamp ## wheels and source archives, the same bytes wherever the same commit is built
	$(PIP) 'build>=1.2'
	rm -rf dist
	set -e; for folder in . $(READERS); do \
	  SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m build --quiet --outdir dist $$folder; done

sbom: .venv/pip.stamp ## what an installation of the core contains, as CycloneDX in dist/sbom.json, and the image, in dist/image.sbom.json
	$(PIP) 'cyclonedx-bom>=7'
	rm -rf build/core && $(PYTHON) -m venv build/core && build/core/bin/python -m pip install --quiet .
	build/core/bin/python -m pip uninstall --quiet --yes pip
	mkdir -p dist
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --output-file dist/sbom.json build/core
	$(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --output-file dist/image.sbom.json deploy/image.lock

LOWEST = sed -n '/^dependencies/,/^]/s/^  "\(.*\)>=\(.*\)",$$/\1==\2/p' pyproject.toml
lowest: ## the core with the lowest versions of its dependencies that pyproject.toml allows, in build/lowest
	rm -rf build/lowest && $(PYTHON) -m venv build/lowest
	build/lowest/bin/python -m pip install --quiet --disable-pip-version-check $$($(LOWEST)) --editable .
	build/lowest/bin/python tools/smoke.py

lock: .venv/pip.stamp ## write the versions and hashes of what the image installs
	$(BIN)/python tools/lock_image.py

clean: ## remove everything that was made
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis dist build
