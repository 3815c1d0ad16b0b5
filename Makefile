# The one door: `make demo` shows a report, `make test` runs all tests, `make lint` all checks, `make bench` the benchmarks.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
ARGS   ?=
DEMO   := corpus/recorded/moe-fp8-postprocess-oom/run.log

.PHONY: demo test lint bench weights evaluate coverage realserver format clean

demo: $(VENV)/installed
	@$(BIN)/logtriage analyze $(DEMO) --exit-zero

test: $(VENV)/ready
	$(BIN)/python -m pytest --numprocesses auto $(ARGS)

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/logtriage rules lint

bench: $(VENV)/ready
	$(BIN)/python tools/bench.py $(ARGS)
	$(BIN)/python tools/bench_runner.py

weights: $(VENV)/ready
	$(BIN)/logtriage train --output logtriage/classifier/weights/weights.json

evaluate: $(VENV)/ready
	$(BIN)/logtriage evaluate corpus
	$(BIN)/python tools/accuracy.py

coverage: $(VENV)/ready
	$(BIN)/python tools/coverage.py

# The runner against a real SGLang: docs/realserver.md says what it needs. It skips where there is no GPU.
realserver: $(VENV)/ready
	$(BIN)/python tools/realserver.py $(ARGS)

format: $(VENV)/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist rules/compiled.json rules/compiled-rules.jsonl rules/compiled-server.json

# The environment: this package, editable …
$(VENV)/installed: pyproject.toml tools/hatch_build.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

# … with what its tests and checks need.
$(VENV)/ready: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $@
