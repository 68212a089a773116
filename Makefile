# mqis. On a fresh machine: `make run` shows it, `make test` proves it.
#
# Needed beforehand: Python 3.11 or newer with venv, and make. Everything else is installed into
# .venv from requirements/*.lock. Another Python: make run PYTHON=python3.12

PYTHON ?= python3
VENV   ?= .venv
PY     := $(VENV)/bin/python
PIP    := $(PY) -m pip --quiet --disable-pip-version-check install
LOCKED := $(PIP) --require-hashes --only-binary :all:

.DEFAULT_GOAL := help
.PHONY: help run install test lint format types pytest conformance mutants reached slices bench fuzz crash chaos soak stranger proof sim engines docs man site java pipeline kerberos audit survey lock clean story secondweek wheel newest release

help: ## what there is
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

# The tour starts a dozen processes: without kept bytecode each would compile all modules anew.
run: $(VENV)/.run $(VENV)/.pipeline java ## the tour: an enterprise of five servers, looked at from all sides (ONCE=1: ends after it)
	@mkdir -p .build
	@env -u PYTHONDONTWRITEBYTECODE $(VENV)/bin/mqis tour --directory .build/tour $(if $(ONCE),--once)

install: $(VENV)/.dev $(VENV)/.run $(VENV)/.pipeline java ## everything that the others need
	@mkdir -p .build

# Types are checked beside the tests: both leave the machine room. What fails is told at the end.
# Tests wait for events, and give up after three minutes: MQIS_TEST_PATIENCE=4 multiplies that by
# four, MQIS_EXAMPLES=1000 has properties try more examples than 25. Measuring coverage doubles the
# time of a test, so it is for CI and for whoever asks.
test: lint $(VENV)/.pipeline java ## every gate: style, types, layers, tests (COVERAGE=1: and the floor of the coverage)
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=none types pytest

lint: $(VENV)/.dev
	@$(PY) -m ruff check --quiet .
	@$(PY) -m ruff format --quiet --check .

format: $(VENV)/.dev ## bring the code into shape
	@$(PY) -m ruff check --quiet --fix .
	@$(PY) -m ruff format --quiet .

types: $(VENV)/.dev $(VENV)/.pipeline
	@$(PY) -m mypy

pytest: $(VENV)/.dev $(VENV)/.pipeline java
	@mkdir -p .build
	@$(PY) tools/run_tests.py $(if $(COVERAGE),--coverage)
ifdef COVERAGE
	@$(PY) -m coverage json --quiet -o .build/coverage.json
	@$(PY) tools/coverage_floor.py
endif

conformance: $(VENV)/.dev ## covered / departs / open / waived requirements (JSON=1 for machines, OPEN=table lists)
	@$(PY) tools/conformance.py $(if $(JSON),--json) $(if $(OPEN),--open $(OPEN))

mutants: $(VENV)/.dev ## edits that tests must notice: those of rows without a kill on record (ALL=1, ONLY=table or id, SAMPLE=40), or at random places (RANDOM=1000 SEED=0 WRITE=1)
	@$(PY) tools/mutants.py $(if $(ONLY),--only $(ONLY)) $(if $(SHARD),--shard $(SHARD)) \
		$(if $(SAMPLE),--sample $(SAMPLE)) $(if $(ALL),--all) $(if $(RANDOM),--random $(RANDOM)) \
		$(if $(SEED),--seed $(SEED)) $(if $(WRITE),--write) $(if $(JSON),--json)

# Recording takes Python 3.12 or newer, and then hardly any time.
reached: .build/newest/.done ## which tests execute which lines, for random mutations: all tests on the newest Python
	@rm -rf .build/reached
	@.build/newest/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes \
		--only-binary :all: --use-pep517 --no-binary pyspark -r requirements/pipeline.lock
	@PYTHONPATH=$(CURDIR)/src:$(CURDIR) MQIS_EXAMPLES=10 .build/newest/bin/python tools/run_tests.py --reached

slices: $(VENV)/.dev $(VENV)/.pipeline java ## a minute each of what takes hours: sim, chaos, soak, stranger, story, bench, engines, the newest Python (CI runs it)
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target \
		slice-benchmarks newest $(addprefix slice-,engines fresh killing second_week simulation story stranger)

# The quick ones of `make engines`: each run takes one of them, at random.
QUICK_ENGINES := $(foreach name,simulated spoiled rebuild_damaged,tests/pipeline/slow/test_$(name).py) \
	tests/interop/slow/test_active_directory_bench.py tests/interop/slow/test_samba_controllers.py
slice-engines:
	@$(PY) -m pytest $$($(PY) -c 'import random, sys; print(random.choice(sys.argv[1:]))' $(QUICK_ENGINES))

slice-%:
	@$(PY) -m pytest tests/slices/$*.py

# Few examples: what is new there is the interpreter. On the way it records which tests execute
# which lines of these layers, unless `make reached` has done so for all.
newest: $(VENV)/.dev ## the tests of wire and protocol on the newest Python of this machine (NEWEST=python3.14)
	@if [ -z "$(NEWEST)" ]; then echo "there is no newer Python here than the one of $(VENV)"; exit 0; fi; \
	$(MAKE) --no-print-directory .build/newest/.done NEWEST="$(NEWEST)" && \
	PYTHONPATH=src:. MQIS_EXAMPLES=5 .build/newest/bin/python -m pytest -p no:cacheprovider \
		$(if $(wildcard .build/reached/rest.db),,--reached .build/reached/newest.db) tests/wire tests/protocol

NEWEST ?= $(shell tools/newest_python.sh $(PY) 2> /dev/null)
.build/newest/.done: requirements/run.lock requirements/dev.lock
	@[ -n "$(NEWEST)" ] || { echo "this takes a Python newer than 3.11: make $(MAKECMDGOALS) NEWEST=python3.13" >&2; exit 1; }
	@$(NEWEST) -m venv .build/newest
	@.build/newest/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes \
		--only-binary :all: -r requirements/run.lock -r requirements/dev.lock
	@touch $@

bench: $(VENV)/.dev ## the benchmarks, each beside a peer (ONLY=name for one, QUICK=1)
	@$(PY) -m bench $(ONLY) $(if $(QUICK),--quick)

fuzz: $(VENV)/.dev ## hostile bytes against every decoder, and inputs whose time grows faster than their size (SECONDS=60, SEED=0)
	@$(PY) -m fuzz --seconds $(or $(SECONDS),60) --seed $(or $(SEED),0)
	@$(PY) -m fuzz.growth --seconds $$(( $(or $(SECONDS),60) / 4 )) --seed $(or $(SEED),0)

crash: $(VENV)/.dev ## kill -9 at random instants (ROUNDS=200)
	@$(PY) -m tools.harness store --rounds $(or $(ROUNDS),200)

chaos: $(VENV)/.dev ## five servers, killed and cut off from each other (CHANGES=10000)
	@$(PY) -m tools.harness chaos --changes $(or $(CHANGES),10000)

soak: $(VENV)/.dev ## five servers under load, killed at random (MINUTES=30)
	@$(PY) -m tools.harness soak --minutes $(or $(MINUTES),30)

stranger: $(VENV)/.dev ## a server under a stranger's load of all kinds from 16 addresses, an administrator beside it (MINUTES=3)
	@$(PY) -m tools.stranger --minutes $(or $(MINUTES),3)

proof: $(VENV)/.dev $(VENV)/.pipeline java ## the pipeline finds every planted fault and no other (SERVERS=200 CHANGES=1000000, SERVERS=1000, GROWTH=1, OUTAGE=100000, PLACE=s3://... for its inputs)
	@$(PY) tools/pipeline_proof.py --servers $(or $(SERVERS),200) $(if $(CHANGES),--changes $(CHANGES)) \
		$(if $(GROWTH),--growth) $(if $(OUTAGE),--outage $(OUTAGE)) $(if $(PLACE),--place "$(PLACE)")

story: $(VENV)/.dev $(VENV)/.pipeline java ## an administrator's week on a running enterprise (SITES=20 MACHINES=200 QUEUES=3000, PAGE=docs/story.md)
	@$(PY) -m tools.story --sites $(or $(SITES),20) --machines $(or $(MACHINES),200) \
		--queues $(or $(QUEUES),3000) $(if $(PAGE),--page $(PAGE))

secondweek: $(VENV)/.dev ## the second week, on 13 servers (SITES=10 MACHINES=40 QUEUES=40, PAGE=docs/second-week.md)
	@$(PY) -m tools.story --second-week --sites $(or $(SITES),10) --machines $(or $(MACHINES),40) \
		--queues $(or $(QUEUES),40) $(if $(PAGE),--page $(PAGE))

wheel: $(VENV)/.dev ## build the wheel, time the way from nothing to the end of the tour, and use all of it in a fresh environment
	@$(PY) -m tools.wheel

release: $(VENV)/.dev .build/site/.done .build/twine/.done ## wheel, sdist, manual pages, site, SBOM and checksums of this commit in .build/release, built twice and compared
	@$(PY) -m tools.release --site .build/site/venv/bin/zensical --twine .build/twine/bin/twine

.build/twine/.done: $(VENV)/bin/python requirements/release.lock
	@echo "installing twine into .build/twine" >&2
	@$(PY) -m venv .build/twine
	@.build/twine/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes \
		--only-binary :all: -r requirements/release.lock
	@touch $@

docs: $(VENV)/.dev ## what tools write into docs/ and deploy/
	@for tool in architecture protocols_doc configuration_doc metrics_doc alerts_doc properties_doc; do $(PY) tools/$$tool.py || exit 1; done

site: $(VENV)/bin/python .build/site/.done ## the documentation as a site with search, in .build/site/html
	@$(PY) tools/site_pages.py .build/site/pages
	@.build/site/venv/bin/zensical build --strict --clean --config-file mkdocs.yml
	@echo "open .build/site/html/index.html"

.build/site/.done: $(VENV)/bin/python requirements/site.lock
	@echo "installing the generator into .build/site/venv" >&2
	@$(PY) -m venv .build/site/venv
	@.build/site/venv/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes \
		--only-binary :all: -r requirements/site.lock
	@touch $@

man: $(VENV)/.run ## the manual pages, into .build/man (then: man -l .build/man/mqis.1)
	@$(VENV)/bin/mqis man .build/man

survey: $(VENV)/.dev ## the code in numbers: names, tables, circles, first words (JSON=1)
	@$(PY) tools/survey.py $(if $(JSON),--json)

sim: $(VENV)/.dev ## enterprises and mirrors with every fault, simulated (SEEDS=1000)
	@$(VENV)/bin/mqis sim --seeds $(or $(SEEDS),1000)
	@$(PY) -m tests.sim.mirror --seeds $(or $(SEEDS),1000)

java: $(VENV)/.run ## see to Java 17+, which only the pipeline needs
	@tools/java_home.sh $(VENV) requirements/java.lock > $(VENV)/java-home || \
		echo "continuing without Java: everything but the pipeline works" >&2

engines: $(VENV)/.dev $(VENV)/.pipeline java ## the pipeline on a cluster, through Connect, in catalogues, and its commands: minutes
	@$(PY) -m pytest tests/pipeline/slow tests/interop/slow tests/docs/slow

pipeline: $(VENV)/.pipeline java ## add what the pipeline needs: Spark, 500 MB

kerberos: $(VENV)/.dev ## add the extra that Kerberos needs (a compiler, Debian: libkrb5-dev)
	@$(PIP) --require-hashes -r requirements/kerberos.lock

audit: $(VENV)/bin/python .build/audit/.done ## known vulnerabilities in what the locks install (asks a service on the network)
	@$(PY) tools/audit.py .build/audit/bin/pip-audit requirements/run.lock requirements/dev.lock \
		requirements/pipeline.lock requirements/java.lock requirements/kerberos.lock \
		requirements/dns.lock

.build/audit/.done: $(VENV)/bin/python requirements/audit.lock
	@echo "installing pip-audit into .build/audit" >&2
	@$(PY) -m venv .build/audit
	@.build/audit/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes \
		--only-binary :all: -r requirements/audit.lock
	@touch $@

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "mqis needs Python 3.11 or newer: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
		{ echo "this Python cannot make virtual environments: install its venv module (Debian: python3-venv)" >&2; exit 1; }

$(VENV)/.run: $(VENV)/bin/python requirements/run.lock pyproject.toml
	@echo "installing into $(VENV)" >&2
	@$(LOCKED) -r requirements/run.lock
	@$(PIP) --no-build-isolation --no-deps --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements/dev.lock
	@echo "installing what the tests need" >&2
	@$(LOCKED) -r requirements/dev.lock
	@touch $@

$(VENV)/.pipeline: $(VENV)/.run requirements/pipeline.lock
	@echo "installing Spark, which takes a few minutes" >&2
	@$(LOCKED) --use-pep517 --no-binary pyspark -r requirements/pipeline.lock
	@touch $@

lock: ## resolve the locks anew (needs uv)
	@cd requirements && for name in run dev dns java kerberos pipeline audit site release; do \
		case $$name in \
			run) of="../pyproject.toml --extra graphs --extra postgres run.in" ;; \
			dev) of="../pyproject.toml --extra graphs --extra postgres run.in dev.in --group ../pyproject.toml:dev" ;; \
			dns|java|kerberos|pipeline|audit|site|release) of="$$name.in" ;; \
		esac; \
		uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
			--no-emit-index-url --no-header $$of --output-file $$name.lock || exit 1; \
	done

clean: ## remove everything that make made
	@rm -rf $(VENV) .build .hypothesis .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
