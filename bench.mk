# Measuring: included by the Makefile, which provides PYTHON and VENV.

PYTHON ?= .venv/bin/python
VENV ?= .venv

# Rounds and seconds of each run; the defaults take some four minutes.
BENCH_ROUNDS ?= 5
BENCH_SECONDS ?= 3

.PHONY: bench bench-cluster bench-tools

bench-tools: $(VENV)
	@tools/need cc:gcc dnsperf nsd unbound dnsmasq:dnsmasq-base
	@$(PYTHON) -c 'import matplotlib' 2>/dev/null || \
	    $(PYTHON) -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@# As the images have it: what is measured is no compiler.
	@$(PYTHON) -m compileall -q kubedns nanny healthz tests/bench

bench: bench-tools ## speed against a C echo, NSD, Unbound and dnsmasq; writes docs/bench.svg and docs/bench.md (two idle cores)
	@mkdir -p docs
	$(PYTHON) -m tests.bench.speed --rounds $(BENCH_ROUNDS) --seconds $(BENCH_SECONDS) \
	    --svg docs/bench.svg --page docs/bench.md

bench-cluster: bench-tools ## memory, sync, stalls and propagation with 10,000 Services and 100,000 endpoints
	$(PYTHON) -m tests.bench.scale
