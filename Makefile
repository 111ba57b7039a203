# make demo     the whole add-on on this machine, without a cluster (CHECK=1: check, then stop)
# make test     every test
# make help     everything else

SHELL := /bin/bash
HOST_PYTHON ?= python3
PYTHON := .venv/bin/python
VENV := .venv/.installed
export PATH := $(PATH):/usr/sbin:/sbin

.DEFAULT_GOAL := help

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z][a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

$(VENV): pyproject.toml
	@tools/need python3:python3 ensurepip:python3-venv
	@$(HOST_PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("needs Python 3.11 or newer, not " + sys.version.split()[0] + "; make HOST_PYTHON=python3.12 names another")'
	@echo "installing what development needs into .venv, from the package index; half a minute"
	test -x $(PYTHON) || $(HOST_PYTHON) -m venv .venv
	$(PYTHON) -m pip install --quiet --disable-pip-version-check uv
	# uv takes a tenth of pip's time; it does not read pip's configuration, where pip may be needed.
	$(PYTHON) -m uv pip install --quiet --python $(PYTHON) --editable '.[dev]' \
	    || $(PYTHON) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

.PHONY: setup
setup: $(VENV) ## make .venv with everything that development needs

.PHONY: demo
demo: setup ## run the add-on without a cluster and ask it a dozen questions; CHECK=1 then stops; WIRING=kubedns-first
	@tools/need dnsmasq:dnsmasq-base dig:bind9-dnsutils
	@$(PYTHON) -m kubedns.local demo $(if $(filter 1,$(CHECK)),--check) $(if $(WIRING),--wiring=$(WIRING))

# As many tests at a time as there are cores; WORKERS=0 runs one after the other.
SIDE_BY_SIDE = -n $(or $(WORKERS),auto) --maxprocesses 8 --dist worksteal

.PHONY: test
test: setup ## the tests, with a real dnsmasq and dig, and kubectl where there is one
	@tools/need dnsmasq:dnsmasq-base dig:bind9-dnsutils kdig:knot-dnsutils openssl:openssl ip:iproute2 \
	    unshare:util-linux setpriv:util-linux ps:procps
	$(PYTHON) -m pytest -q $(SIDE_BY_SIDE) --ignore tests/e2e/pod --ignore tests/monitoring \
	    --ignore tests/release $(TESTS)

.PHONY: unit
unit: setup ## the tests of the pure rooms, in seconds
	$(PYTHON) -m pytest -q tests/unit/dns tests/unit/zone tests/unit/skydns tests/unit/telemetry

.PHONY: monitoring
monitoring: setup ## alerts, dashboard and scraping against a real Prometheus
	@tools/need prometheus:prometheus promtool:prometheus dnsmasq:dnsmasq-base
	$(PYTHON) -m pytest -q tests/monitoring

.PHONY: rules
rules: ## deploy/monitoring/prometheusrule.yaml, made from alerts.yaml
	$(HOST_PYTHON) deploy/monitoring/prometheusrule.py

.PHONY: lint
lint: setup ## style, types, import directions
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

.PHONY: format
format: setup ## put the code into form
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

.PHONY: fuzz
fuzz: setup ## ten minutes of hostile packets (MINUTES=10)
	$(PYTHON) tests/fuzz.py --minutes $(or $(MINUTES),10)

.PHONY: twin
twin: setup ## 100,000 random changes and questions against a fresh twin
	$(PYTHON) tests/twin.py

.PHONY: fresh
fresh: ## README's commands on a new root file system; needs root and debootstrap; ALL=1: another release and user too
	tools/fresh $(if $(filter 1,$(ALL)),all)

.PHONY: clean
clean: ## remove what was made, .venv included
	rm -rf .venv .venv-bench .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache build dist

-include bench.mk
-include images.mk
-include release.mk
