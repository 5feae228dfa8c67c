# One command per intent, in a fresh clone: the first run makes .venv and installs, later runs start at once.
# Needs Python 3.11+ (another one: make PYTHON=python3.12) and a package index. PyCUDA is built where a C++ compiler is; so is Annoy, for tests.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

demo: $(VENV)/installed  ## train the language model under three readouts and compare (under 3 minutes)
	@$(BIN)/hybrid demo

test: $(VENV)/installed-test  ## run the tests that answer in minutes
	@$(BIN)/python -m pytest -n auto --dist loadfile -m 'not slow and not later'

test-all: $(VENV)/installed-test-all  ## run all tests but the long sweeps, as CI does
	@$(BIN)/python -m pytest -n auto --dist loadfile -m 'not slow'

test-slow: $(VENV)/installed-test-all  ## run the long sweeps too
	@FUZZ_CASES=1000 $(BIN)/python -m pytest -n auto --dist loadfile

fuzz: $(VENV)/installed-test-all  ## read changed copies of files, run absurd commands: make fuzz N=1000 SEED=0 (cases a subject)
	@FUZZ_CASES=$(or $(N),1000) FUZZ_SEED=$(or $(SEED),0) OMP_NUM_THREADS=2 $(BIN)/python -m pytest -n auto --show-capture=no \
	  tests/fuzz/test_fuzz.py::test_what_strangers_send_is_read_or_refused_by_name $(ARGS)

CHECKED := tests/hybrid/schedule/test_alone.py tests/hybrid/schedule/test_interrupt.py tests/hybrid/storage tests/hybrid/engine tests/cpu

checked: $(VENV)/installed-test-all  ## tests in Python's development mode; the simulated driver under sanitizers
	@$(BIN)/python -X dev -X faulthandler -m pytest -q -n auto --dist loadfile -m 'not slow' $(CHECKED)
	@$(BIN)/python -m tests.cudasim.sanitized -n auto --dist loadfile -m 'not slow' tests/cudasim tests/gpu

lint: $(VENV)/installed-lint  ## check style, types and the rules of scientific Python packages
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet . || { echo 'run: make format'; exit 1; }
	@$(BIN)/mypy
	@$(BIN)/sp-repo-review --show err .

format: $(VENV)/installed-lint  ## write the files in the style that lint asks for
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(VENV)/installed-docs  ## build the pages and the API reference into build/site; a warning is an error
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

crash: $(VENV)/installed-test-all  ## kill tiny runs, let their disks fail, N times each: make crash N=1000 SEED=0
	@$(BIN)/python -m tests.cudasim $(BIN)/python -m tests.crash --kills $(or $(N),100) --faults $(or $(N),100) \
	  --device cpu --device cuda:0 --seed $(or $(SEED),0) $(ARGS)

bench: $(VENV)/installed-bench  ## measure beside peers: make bench NAME=units (without NAME: lists them)
	@$(BIN)/python -m bench $(NAME) $(ARGS)

mutants: $(VENV)/installed-test-all  ## small faults planted in the sources, the share that tests find: make mutants PATHS=cpu N=50 SEED=7
	@$(BIN)/python -m tests.mutants --paths $(or $(PATHS),hybrid cpu gpu) --number $(or $(N),500) --seed $(or $(SEED),7) $(ARGS)

NVCC := $(patsubst %,'nvidia-%==13.0.*',cuda-nvcc cuda-crt cuda-runtime cuda-cccl cuda-profiler-api nvvm)

gpu-kit: $(VENV)/installed  ## wheels, kernels, recording for a GPU machine without a network (GPU_PYTHON=python3.13: not 3.12)
	@$(PIP) install --quiet $(NVCC)
	@GPU_PYTHON='$(GPU_PYTHON)' $(BIN)/python -m bench.gpu.kit

soak: $(VENV)/installed-test-all  ## random models in many orders beside the serial run: make soak N=200 SEED=0 (seeds, the first)
	@SOAK_SEEDS=$(or $(N),200) SOAK_FIRST=$(or $(SEED),0) $(BIN)/python -m pytest -n auto tests/soak $(ARGS)

clean:  ## remove the environment and everything made
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' $(MAKEFILE_LIST)

.PHONY: demo test test-all test-slow fuzz crash lint format docs bench mutants gpu-kit soak checked clean help

# A stamp exists only where its installation succeeded, and is out of date when the requirements change.
EXTRAS := test test-all lint docs bench
STAMPS := $(VENV)/installed $(EXTRAS:%=$(VENV)/installed-%)
$(EXTRAS:%=$(VENV)/installed-%): EXTRA = $(@:$(VENV)/installed-%=%)
BUILT := annoy
$(VENV)/installed $(VENV)/installed-lint $(VENV)/installed-docs: BUILT :=
$(VENV)/installed-test $(VENV)/installed-test-all: AND_THEN := $(BIN)/python -m tests.cudasim.prepare
$(STAMPS): pyproject.toml setup.py | $(BIN)/pip
	@built='$(BUILT)'; \
	[ -z "$$built" ] || lacks=$$(sh .ci/compiler $(BIN)/python) || { built=; echo "annoy is left out: $$lacks"; }; \
	extras=$$(echo $$built $(EXTRA) | tr ' ' ,); \
	echo "installing hybrid-engine$${extras:+[$$extras]} into $(VENV) (docs/install.md says what it costs)"; \
	$(PIP) install --quiet --editable ".$${extras:+[$$extras]}" || \
	  { echo 'installation failed: the lines above say why; pip needs a package index (PIP_INDEX_URL names another)'; exit 1; }
	@$(AND_THEN)
	@touch $@

$(BIN)/pip:
	@python=$$(sh .ci/prerequisites $(PYTHON)) && "$$python" -m venv --clear $(VENV)
