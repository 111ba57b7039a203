# What a release is made of: packages, images of both platforms, manifests, bills of materials, sums.
# Included by the Makefile, which makes the virtualenv (VENV) and names its PYTHON.

RELEASE_PLATFORMS ?= linux/amd64 linux/arm64

.PHONY: dist
dist: $(VENV) ## dist/*.whl and dist/*.tar.gz, the same octets for the same commit
	@mkdir -p dist
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} $(PYTHON) -m uv build --quiet --out-dir dist

.PHONY: installs
installs: $(VENV) ## a plain `pip install` in a new virtualenv, from wheel and source; needs the package index
	$(PYTHON) -m pytest -q -p no:cacheprovider tests/release

.PHONY: release
release: $(VENV) engine ## dist/release: packages, OCI archives, manifests with digests, bills of materials, SHA256SUMS
	@tools/need git:git
	$(PYTHON) -m pip install --quiet --require-hashes -r requirements/sbom.txt
	$(PYTHON) -m deploy.images.release $(ENGINE_FLAG) --prefix $(IMAGE_PREFIX) --output dist/release \
	    $(addprefix --platform=,$(RELEASE_PLATFORMS))

.PHONY: advisories
advisories: $(VENV) ## the pinned versions against published advisories; needs the index of advisories
	$(PYTHON) -m pip install --quiet pip-audit
	@for role in kubedns nanny healthz; do \
	    $(PYTHON) -m pip_audit --progress-spinner off --strict --require-hashes --disable-pip --requirement requirements/$$role.txt || \
	        { echo "advisories: $$role has advisories, or their index cannot be reached: see above" >&2; exit 1; }; \
	done

# The interpreters that the unit and protocol tests also run with, as uv names them or by path.
PYTHONS ?= /usr/bin/python3 3.13 3.14

.PHONY: pythons
pythons: $(VENV) ## unit and protocol tests with the distribution's Python, 3.13 and 3.14 (PYTHONS="...")
	@for wanted in $(PYTHONS); do \
	    place=build/python-$$(basename $$wanted); \
	    $(PYTHON) -m uv venv --quiet --clear --python $$wanted $$place || exit 1; \
	    $(PYTHON) -m uv pip install --quiet --python $$place/bin/python --editable '.[dev]' || exit 1; \
	    echo "== $$($$place/bin/python -VV)"; \
	    $$place/bin/python -m pytest -q $(SIDE_BY_SIDE) tests/unit tests/protocol || exit 1; \
	done
