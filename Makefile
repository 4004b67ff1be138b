# The two commands are `make lab` and `make test`. CONTRIBUTING.md tells of the others.
PYTHON ?= python3
ifeq ($(OS),Windows_NT)
RUN := .venv/Scripts/python
else
RUN := .venv/bin/python
endif

.PHONY: lab test setup notebooks lint lock bench mutants plant

lab: setup
	$(RUN) -m jupyterlab --ServerApp.root_dir=. $(LAB_ARGS) notebooks/00_start_here.ipynb

test: setup
	$(RUN) -m pytest $(TEST_ARGS)

setup:
	@$(PYTHON) tools/setup.py

notebooks: setup
	$(RUN) tools/notebooks.py

lint: setup
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

lock: setup
	$(RUN) -m uv pip compile pyproject.toml --group test --group dev --output-file requirements.txt \
	    --universal --python-version 3.11 --generate-hashes --upgrade --no-emit-index-url \
	    --custom-compile-command "make lock"

bench: setup
	@$(RUN) benchmarks

mutants: setup
	$(RUN) tools/mutants.py $(MUTANTS_ARGS)

plant: setup
	$(RUN) tools/plant_mutants.py $(PLANT_ARGS)
