# Images, rendered manifests, the pod-level test and the bills of materials.
# Included by the Makefile, which makes the virtualenv (VENV) and names its PYTHON.

# Empty: the first of docker, podman and buildah, and a base that is pulled, or made from Debian's
# archive where there is no registry.  The tag is the version in kubedns/__init__.py.
ENGINE ?=
BASE ?=
# For instance linux/arm64, which needs emulation on another machine (Debian: qemu-user-static).
PLATFORM ?=
IMAGE_PREFIX ?= localhost/kube-dns/
ENGINE_FLAG = $(if $(ENGINE),--engine $(ENGINE))

.PHONY: engine
engine:
	@# A docker without its daemon is no engine.
	@for program in $(or $(ENGINE),docker podman buildah); do $$program version >/dev/null 2>&1 && exit 0; done; \
	tools/need podman:podman runc:runc

.PHONY: images
images: engine ## the three container images, and their sizes
	python3 deploy/images/build.py $(ENGINE_FLAG) $(if $(BASE),--base $(BASE)) \
	    $(if $(PLATFORM),--platform $(PLATFORM)) --prefix $(IMAGE_PREFIX)

.PHONY: e2e
e2e: $(VENV) ## the manifests' pod in real containers (WIRING=kubedns-first); needs root, podman and kubectl
	@tools/need podman:podman runc:runc conntrack:conntrack dig:bind9-dnsutils ip:iproute2 nft:nftables \
	    openssl:openssl sysctl:procps
	python3 deploy/images/build.py --engine podman
	WIRING=$(WIRING) $(PYTHON) -m pytest tests/e2e/pod -p no:cacheprovider --durations=5

.PHONY: pod-memory
pod-memory: $(VENV) ## resident memory of each container of a pod with the images; needs root and podman
	$(PYTHON) -m pytest -q tests/e2e/pod/test_memory.py -k small_cluster -p no:cacheprovider

.PHONY: sbom
sbom: $(VENV) engine ## dist/sbom/IMAGE.cdx.json: what is in each image
	$(PYTHON) -m pip install --quiet --require-hashes -r requirements/sbom.txt
	$(PYTHON) -m deploy.images.sbom $(ENGINE_FLAG) --prefix $(IMAGE_PREFIX) --output dist/sbom

.PHONY: manifests
manifests: ## deploy/kube-dns.yaml, for kubectl apply -f
	kubectl kustomize deploy > deploy/kube-dns.yaml

UV_COMPILE = $(PYTHON) -m uv pip compile --quiet --universal
PINNED = --generate-hashes --no-annotate --custom-compile-command "make requirements"

.PHONY: requirements
requirements: $(VENV) ## the pins of what the images install, from pyproject.toml and requirements/*.in
	$(PYTHON) -m pip install --quiet uv
	@mkdir -p build
	$(UV_COMPILE) --python-version 3.13 pyproject.toml -o build/constraints.txt
	for role in kubedns nanny healthz; do \
	    $(UV_COMPILE) $(PINNED) --python-version 3.13 --constraints build/constraints.txt \
	        requirements/$$role.in -o requirements/$$role.txt || exit 1; \
	done
	for tool in build sbom; do \
	    $(UV_COMPILE) $(PINNED) --python-version 3.11 requirements/$$tool.in -o requirements/$$tool.txt || exit 1; \
	done
