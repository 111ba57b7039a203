# Measuring: included by the Makefile, which provides PYTHON, VENV and HOST_PYTHON.

# Rounds and seconds of each run; the defaults take some seven minutes.
BENCH_ROUNDS ?= 5
BENCH_SECONDS ?= 3

# The interpreter that is measured: the distribution's, where it is new enough, as it is built with
# profile-guided optimization like that of the images; one that is not takes a third more.
BENCH_HOST_PYTHON ?= $(shell /usr/bin/python3 -c 'import sys; sys.version_info >= (3, 11) or sys.exit(1); print(sys.executable)' 2>/dev/null || echo $(HOST_PYTHON))
BENCH_PYTHON := .venv-bench/bin/python

.PHONY: bench bench-cluster bench-tools

.venv-bench/.installed: $(VENV) pyproject.toml
	test -x $(BENCH_PYTHON) || $(BENCH_HOST_PYTHON) -m venv --without-pip .venv-bench
	$(PYTHON) -m pip --python $(BENCH_PYTHON) install --quiet --disable-pip-version-check --editable '.[bench]'
	touch $@

bench-tools: .venv-bench/.installed
	@tools/need cc:gcc dnsperf nsd unbound dnsmasq:dnsmasq-base
	@# As the images have it: what is measured is no compiler.
	@$(BENCH_PYTHON) -m compileall -q kubedns nanny healthz tests/bench

bench: bench-tools ## speed against a C echo, NSD, Unbound and dnsmasq; writes docs/bench.svg and docs/bench.md (two idle cores)
	@mkdir -p docs
	$(BENCH_PYTHON) -m tests.bench.speed --rounds $(BENCH_ROUNDS) --seconds $(BENCH_SECONDS) \
	    --svg docs/bench.svg --page docs/bench.md

bench-cluster: bench-tools ## memory, sync, stalls and propagation with 10,000 Services and 100,000 endpoints
	$(BENCH_PYTHON) -m tests.bench.scale
	@# The containers of a pod, where the images can be run.
	@if [ "$$(id -u)" = 0 ] && command -v podman >/dev/null; then $(MAKE) --no-print-directory pod-memory; fi

.PHONY: bench-dearest
bench-dearest: $(VENV) ## the questions that take most CPU time, by name
	$(PYTHON) -m tests.bench.dearest
