# Two commands on a fresh machine: make demo, make test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test fast lint bench clean

demo: $(VENV)/.ready  ## every method on the shipped sample with the offline rehearsal endpoint, then the report
	$(BIN)/python launch.py experiment=demo run.dir=runs/demo

test: $(VENV)/.ready  ## everything tested
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --durations 25

fast: $(VENV)/.ready  ## the part of the tests that needs no Ray session, no data and no browser
	$(BIN)/python -m pytest -m "not slow and not data and not page"

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.ready  ## ratios against a floor measured in the same run
	$(BIN)/python -m pytest tests/perf -m perf -s

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
