# Images, rendered manifests, the pod-level test and the bills of materials.
# Included by the Makefile, which provides PYTHON (the virtualenv's) and VENV (what makes it).

PYTHON ?= .venv/bin/python
VENV ?= .venv

# Empty: the first of docker, podman and buildah; the tag is the version in kubedns/__init__.py.
ENGINE ?=
BASE ?=
IMAGE_PREFIX ?= localhost/kube-dns/
IMAGE_FLAGS = $(if $(ENGINE),--engine $(ENGINE)) $(if $(BASE),--base $(BASE)) --prefix $(IMAGE_PREFIX)

.PHONY: images engine e2e e2e-tools sbom manifests requirements

engine:  ## A container engine, by apt where we may
	@for program in docker podman buildah; do command -v $$program >/dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends podman runc >/dev/null; \
	else \
	    echo "no container engine: install docker, podman or buildah (Debian: apt-get install podman runc)" >&2; \
	    exit 1; \
	fi

images: engine  ## The three images, and their sizes
	python3 deploy/images/build.py $(IMAGE_FLAGS)

e2e-tools:
	@for program in conntrack dig ip nft openssl podman sysctl; do \
	    command -v $$program >/dev/null || missing=1; \
	done; \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	        conntrack dnsutils iproute2 nftables openssl podman procps runc >/dev/null; \
	fi

e2e: e2e-tools images $(VENV)  ## The manifests' pod in real containers (root; podman)
	$(PYTHON) -m pytest tests/e2e/pod -m e2e -p no:cacheprovider --durations=5

manifests:  ## deploy/kube-dns.yaml, for `kubectl apply -f`
	kubectl kustomize deploy > deploy/kube-dns.yaml

sbom: $(VENV)  ## dist/sbom/*.cdx.json: what is in each image
	$(PYTHON) -m pip install -q --require-hashes -r requirements/sbom.txt
	$(PYTHON) -m deploy.images.sbom --prefix $(IMAGE_PREFIX) --output dist/sbom

requirements: $(VENV)  ## Pins for the images, from pyproject.toml
	$(PYTHON) -m pip install -q uv
	for role in kubedns nanny healthz; do \
	    $(UV_COMPILE) --python-version 3.13 --extra $$role pyproject.toml -o requirements/$$role.txt || exit 1; \
	done
	for tool in build sbom; do \
	    $(UV_COMPILE) --python-version 3.11 requirements/$$tool.in -o requirements/$$tool.txt || exit 1; \
	done

UV_COMPILE = $(PYTHON) -m uv pip compile --quiet --universal --generate-hashes --no-annotate \
    --custom-compile-command "make requirements"
