# Every target does its own set-up in .venv; a fresh machine needs Python 3.11+, pip and make.
PYTHON ?= python3
BIN := .venv/bin
READERS := packages/unpoison-reader packages/unpoison-reader-base
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test seeded check lint types imports speed format docs benchmarks coverage mutants dist sbom lock notebooks clean

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
	$(PIP) $(READERS:%=--editable %) --editable '.[reader,reader-base,serve,mcp,client,redteam,files]' --group test
	@touch $@

.venv/dev.stamp: .venv/core.stamp $(READERS:%=%/pyproject.toml)
	$(PIP) $(READERS:%=--editable %) --editable '.[torch,onnx,reader,reader-base,export,offline,openai,anthropic,parquet,reference,plot,redis,postgres,faiss,qdrant,pgvector,chroma,langchain,llamaindex,haystack,langgraph,openai-agents,pydantic-ai,serve,mcp,otel,client,ray,redteam,files]' --group dev
	@touch $@

demo: .venv/core.stamp ## attack and defend the built-in sample: no key, no download of models
	$(BIN)/unpoison demo

test: .venv/test.stamp ## run the tests; those that need a package which is not installed are skipped, `make check` installs all
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

seeded: .venv/dev.stamp ## what a seed decides, on every kernel that the processor can run, with one thread and two
	$(BIN)/python tools/run_seeded.py

check: lint types imports speed test ## everything that has to be green, with every package installed

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

docs: .venv/dev.stamp ## the documentation as a site, in build/site; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

benchmarks: .venv/dev.stamp ## measure the named tables of the docs again and compare; needs the evaluation data
	$(BIN)/python -m benchmarks tables

coverage: .venv/dev.stamp ## run all tests and name the lines of src that none of them ran; fails below 95 %
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

mutants: .venv/dev.stamp ## put 300 small faults into the source and count those that the tests notice; hours, may be stopped
	$(BIN)/python -m benchmarks mutants --total 300

dist: .venv/pip.stamp ## wheels and source archives, the same bytes wherever the same commit is built
	$(PIP) 'build>=1.2'
	rm -rf dist
	set -e; for folder in . $(READERS); do \
	  SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m build --quiet --outdir dist $$folder; done

sbom: .venv/pip.stamp ## what an installation of the core contains, as CycloneDX in dist/sbom.json
	$(PIP) 'cyclonedx-bom>=7'
	rm -rf build/core && $(PYTHON) -m venv build/core && build/core/bin/python -m pip install --quiet .
	build/core/bin/python -m pip uninstall --quiet --yes pip
	mkdir -p dist
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --output-file dist/sbom.json build/core

lock: .venv/dev.stamp ## requirements-dev.txt: every package of the development environment with its hashes
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --all-extras --group dev --constraint constraints.txt \
	  $(READERS:packages/%=--no-emit-package %) --custom-compile-command 'make lock' --output-file requirements-dev.txt pyproject.toml

notebooks: .venv/dev.stamp ## run the notebooks of examples/notebooks and keep what they show
	$(BIN)/python tools/run_notebooks.py

clean: ## remove everything that was made
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis dist build
