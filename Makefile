# Every target does its own set-up in .venv; a fresh machine needs Python 3.11+, pip and make.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test check lint types imports format docs benchmarks coverage mutants clean

help: ## show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.venv/pip.stamp:
	$(PYTHON) -m venv .venv
	$(PIP) --upgrade "pip>=25.1"
	@touch $@

.venv/core.stamp: .venv/pip.stamp pyproject.toml constraints.txt
	$(PIP) --editable .
	@touch $@

.venv/dev.stamp: .venv/core.stamp packages/unpoison-reader/pyproject.toml
	$(PIP) --editable packages/unpoison-reader --editable '.[torch,onnx,reader,export,offline,openai,anthropic,parquet,reference,plot,redis,postgres,faiss,qdrant,pgvector,langchain,llamaindex,haystack,serve,mcp,otel,client,ray,redteam,files]' --group dev
	@touch $@

demo: .venv/core.stamp ## attack and defend the built-in sample: no key, no download of models
	$(BIN)/unpoison demo

test: .venv/dev.stamp ## run all tests
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

check: lint types imports test ## everything that has to be green

lint: .venv/dev.stamp ## style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/dev.stamp ## mypy, strict
	$(BIN)/mypy

imports: .venv/dev.stamp ## the one-way rule of docs/architecture.md
	$(BIN)/lint-imports

format: .venv/dev.stamp ## rewrite files in the house style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: .venv/dev.stamp ## the documentation as a site, in build/site; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

benchmarks: .venv/dev.stamp ## measure the named tables of the docs again and compare; needs ../shared/data
	$(BIN)/python benchmarks/tables.py

coverage: .venv/dev.stamp ## run all tests and name the lines of src that none of them ran; fails below 95 %
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

mutants: .venv/dev.stamp ## put small faults into the source and count those that the tests notice; hours, may be stopped
	$(BIN)/python benchmarks/mutants.py --sample 12

clean: ## remove everything that was made
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis dist build
