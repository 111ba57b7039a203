# make demo     the whole add-on on this machine, without a cluster (CHECK=1: check, then stop)
# make test     every test
# make help     everything else

SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PATH := $(CURDIR)/$(BIN):$(PATH):/usr/sbin:/sbin

.DEFAULT_GOAL := help

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z][a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

$(VENV)/.installed: pyproject.toml
	tools/need $(PYTHON):python3 ensurepip:python3-venv
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

.PHONY: setup
setup: $(VENV)/.installed ## make .venv with everything that development needs

.PHONY: demo
demo: setup ## run the add-on without a cluster and ask it a dozen questions; CHECK=1 then stops
	@tools/need dnsmasq:dnsmasq-base dig:bind9-dnsutils
	@$(BIN)/python -m kubedns.local demo $(if $(filter 1,$(CHECK)),--check)

.PHONY: test
test: setup ## every test, with a real dnsmasq, dig, kubectl and openssl
	@tools/need dnsmasq:dnsmasq-base dig:bind9-dnsutils kubectl:kubernetes-client openssl:openssl ip:iproute2
	$(BIN)/python -m pytest -q $(TESTS)

.PHONY: lint
lint: setup ## style, types, import directions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: format
format: setup ## put the code into form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: clean
clean: ## remove what was made, .venv included
	rm -rf $(VENV) .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache build dist

-include bench.mk
-include images.mk
