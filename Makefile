# Every target sets itself up: `make demo` on a fresh machine is enough.
SHELL := /bin/bash
.DEFAULT_GOAL := help
# Container images like to set it; then each of the many processes compiles all modules again.
unexport PYTHONDONTWRITEBYTECODE
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := build/demo
comma := ,
# With uv where it is installed, else with pip: the same files, checked by their hashes. It takes a minute, so both show
# what they are doing.
define install
	@echo "installing $(or $(1),Pipeswarm) into $(VENV): about a minute"
	@if command -v uv >/dev/null; then \
	  uv pip install --python $(BIN)/python --constraints constraints.txt --build-constraints constraints.txt -e '.[$(1)]'; else \
	  set -o pipefail; $(BIN)/python deploy/install.py --editable $(1) \
	  | { grep --line-buffered -oE '^ *(Collecting|Building|Installing collected) [a-zA-Z0-9._-]+' || true; }; fi
endef

.PHONY: help demo test rehearse check lines corpus bench compiled mutants audit locked licences reference pictures sbom release install clean

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

install: $(VENV)/.installed  ## into .venv, every file checked by its hash

demo: $(VENV)/.installed  ## load the built-in simulated platform, whose artifact store fills up, and name the report
	@mkdir -p $(DEMO)
	$(BIN)/kfp dsl compile --py examples/training.py --output $(DEMO)/training.yaml
	$(BIN)/generate-scenarios --n 200 --seed 7 --from-pipeline $(DEMO)/training.yaml -o $(DEMO)/scenarios.csv
	@# 3 says that an objective was missed: with a store that fills up, that is what the demo has to find.
	$(BIN)/locust -f locustfiles/kfp.py --headless --only-summary --skip-log \
	  --simulate demo --fault store-full --schedule burst --runs 200 --seed 7 \
	  --pipeline $(DEMO)/training.yaml --scenarios $(DEMO)/scenarios.csv --slo 'failed_ratio < 0.01' || test $$? -eq 3

test: $(VENV)/.installed-dev  ## the tests
	$(BIN)/pytest -n 5 --dist loadgroup --no-loadscope-reorder --reruns 2 --reruns-delay 2 -raR --durations 20 --durations-min 8

rehearse: $(VENV)/.installed-dev  ## the main job against the real parts at hand; ARGS=--table: what limits a real controller
	$(BIN)/python -m tests.support.real_parts $(ARGS)

check: $(VENV)/.installed-dev  ## lint, types, layer contracts, the limit of lines
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.support.lines --check

lines: $(VENV)/.installed-dev  ## count the lines of product code by room, into docs/architecture.md
	$(BIN)/python -m tests.support.lines

corpus: $(VENV)/.installed  ## try every pipeline and workflow of a folder on the simulated platform: make corpus DIR=pipelines
	@$(BIN)/pipeswarm simulate corpus $(DIR) $(ARGS)

bench: $(VENV)/.installed-dev  ## benchmarks, as ratios within one run, into benchmarks/results
	$(BIN)/python benchmarks/run.py $(ARGS)

bench-%: $(VENV)/.installed-dev  # one of them: make bench-capacity, make bench-drive ARGS=--long, …
	$(BIN)/python benchmarks/$(subst -,_,$*).py $(ARGS)

compiled: $(VENV)/.installed-dev  ## a wheel with the simulator's core compiled, in build/compiled
	@# From a source archive: a build in place would leave compiled modules, which hide later changes.
	rm -rf build/compiled
	$(BIN)/hatchling build -t sdist -d build/compiled
	HATCH_BUILD_HOOK_ENABLE_MYPYC=true $(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps \
	  --wheel-dir build/compiled build/compiled/*.tar.gz

mutants: $(VENV)/.installed-mutants  ## change the code and see whether a test notices: make mutants ARGS=harness/model/slo.py
	@$(BIN)/python -m tests.support.mutants $(ARGS)

audit: $(VENV)/.installed-dev  ## known vulnerabilities of the locked packages; needs the network
	@# In an environment of its own: the audit's packages must not mix with the audited ones.
	test -x build/audit/bin/pip-audit || { $(PYTHON) -m venv build/audit && build/audit/bin/pip install --quiet pip-audit; } \
	  || { echo 'make audit needs the network: it installs pip-audit.'; exit 1; }
	build/audit/bin/pip-audit --requirement constraints.txt --no-deps --disable-pip --progress-spinner off \
	  || { echo 'Without the network nothing is audited: pip-audit asks PyPI about each package.'; exit 1; }

locked:  ## write constraints.txt, the versions and hashes of all that is installed; needs the network and uv
	uv pip compile pyproject.toml --all-extras --generate-hashes --universal --python-version 3.11 --no-emit-index-url \
	  --no-annotate --custom-compile-command 'make locked' --quiet $(ARGS) --output-file constraints.txt

licences: $(VENV)/.installed-dev  ## write docs/licences.md
	$(BIN)/python -m tests.support.licences

reference: $(VENV)/.installed-dev  ## write docs/options.md and docs/reference from the code
	$(BIN)/python -m tests.support.reference

pictures: $(VENV)/.installed-dev  ## take the screenshots of README and tutorial; needs Chromium
	$(BIN)/python -m tests.support.pictures

sbom: $(VENV)/.installed-dev  ## write build/sbom.json, the packages of a user's installation (CycloneDX)
	@mkdir -p build
	$(BIN)/python -m tests.support.sbom build/sbom.json

release: $(VENV)/.installed-dev  ## write what a release attaches into build/release: make release DIGEST=sha256:… of its image
	@$(BIN)/python -m tests.support.release build/release $(DIGEST)

clean:  ## remove what these targets made, but no run
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/.installed: pyproject.toml constraints.txt deploy/install.py
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(call install)
	touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(call install,dev)
	touch $@ $(VENV)/.installed

$(VENV)/.installed-mutants: $(VENV)/.installed-dev
	$(call install,dev$(comma)mutants)
	touch $@
