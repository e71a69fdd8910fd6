# The index of all commands. `make help` prints it.
SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
CARGO ?= cargo
CONTROLLERS := $(notdir $(wildcard crates/*-controller))
# The programs that the demo and its relatives play with. With BIN=target/debug they are those of the tests, which are compiled anyway.
BIN := target/release
# All builds compile with the features of the same crates, whatever programs they make: other features would compile dependencies again.
RELEASE = $(CARGO) build --release --locked --workspace --exclude xtask --exclude dist
DEBUG = $(CARGO) build --locked --workspace --all-targets
# Generated files, structural checks and test runs.
XTASK := target/debug/xtask
# The cache of things that are built once: control plane, tools.
export WEIR_CACHE_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/weir

.DEFAULT_GOAL := help
.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the release binaries into target/release
	@hack/progress.sh "compiling the release binaries" $(RELEASE) $(addprefix --bin ,$(CONTROLLERS) weir)

# The programs of the demo: the command line is not among them.
.PHONY: build-demo
build-demo:
ifeq ($(BIN),target/release)
	@hack/progress.sh "compiling the controllers and the demo" $(RELEASE) $(addprefix --bin ,$(CONTROLLERS) testkit e2e)
else
	$(DEBUG)
endif

.PHONY: build-weir
build-weir:
	@hack/progress.sh "compiling weir and the benchmarks" $(RELEASE) --bin weir --bin testkit --bin e2e

.PHONY: xtask
xtask:
	@$(CARGO) build -q --locked --workspace --bin xtask

.PHONY: control-plane
control-plane: build-demo ## Build the test control plane into the cache, once
	@$(BIN)/testkit build

.PHONY: demo
demo: control-plane ## Play the whole story on a real control plane (KEEP=1, EXAMPLE=DIR PROJECT=SUBDIR TARGET=NAME,NAME)
	@WEIR_BIN_DIR=$(CURDIR)/$(BIN) $(BIN)/e2e demo $(if $(KEEP),--keep) $(if $(EXAMPLE),--example "$(EXAMPLE)") \
	  $(if $(PROJECT),--project "$(PROJECT)") $(if $(TARGET),--target "$(TARGET)")

.PHONY: test
# With CONFORMANCE=1, the tests with recordings of the originals do all that `make conformance` does.
test: xtask ## Run all tests (with a real control plane) side by side, and list the slowest and those that were skipped (LANES=2 THREADS=3 CRATE=name SKIP=part)
	@rm -rf target/skipped; failed=0; \
	  $(if $(CONFORMANCE),WEIR_CHARTS=1) $(XTASK) test $(TEST_OPTIONS) $(if $(CONFORMANCE),--show recorded) || failed=$$?; \
	  if [ -d target/skipped ]; then echo "skipped:"; sed 's/^/  /' target/skipped/*; else echo "skipped: nothing"; fi; \
	  exit $$failed
TEST_OPTIONS = $(if $(LANES),--lanes $(LANES)) $(if $(THREADS),--threads $(THREADS)) $(addprefix --crate ,$(CRATE)) $(addprefix --skip ,$(SKIP))

.PHONY: stress
stress: xtask ## Run each suite ten times beside two busy loops, and name what failed (TIMES=10 CRATE=name)
	@$(XTASK) test --times $(or $(TIMES),10) --busy 2 $(TEST_OPTIONS)

.PHONY: flux-cli
flux-cli: xtask ## Build the real flux command line into the cache, and try it as a client; later runs of `make test` do so, too
	$(DEBUG)
	target/debug/testkit build --tests --flux
	$(XTASK) test --crate e2e flux_cli

.PHONY: flux-notification
flux-notification: xtask ## Build the notification-controller of Flux into the cache, and send it our events; later runs of `make test` do so, too
	$(DEBUG)
	target/debug/testkit build --tests --flux-notification
	$(XTASK) test --crate e2e flux_notification

.PHONY: flux-consumers
flux-consumers: xtask ## Build the kustomize- and helm-controller of Flux into the cache, and let them use our artifacts; later runs of `make test` do so, too
	$(DEBUG)
	target/debug/testkit build --tests --flux-consumers
	$(XTASK) test --crate e2e flux_consumers

.PHONY: conformance
# A case that fails fails the target, unless docs/differences.md names it.
conformance: xtask ## Compare with recordings of the originals (CONFORMANCE_DIR=../shared/conformance)
	@WEIR_CHARTS=1 $(XTASK) test --crate cli --crate helm --crate jinja --crate kustomize --show recorded recorded

.PHONY: up
up: control-plane ## Start a control plane with the controllers in the background, for trying things
	@WEIR_BIN_DIR=$(CURDIR)/$(BIN) $(BIN)/testkit up

.PHONY: down
down: ## Stop what `make up` started
	@[ -x $(BIN)/testkit ] || $(RELEASE) -q --bin testkit
	@$(BIN)/testkit down

.PHONY: install
install: ## Install CRDs and controllers into your current cluster (KUBECTL="kubectl --context X")
	@test -n "$${KUBECONFIG:-}" -o -n "$(KUBECTL)" -o -f "$(HOME)/.kube/config" || { echo "set KUBECONFIG or KUBECTL=\"kubectl --context NAME\": there is no cluster to install into"; exit 1; }
	$(or $(KUBECTL),kubectl) apply --server-side -k deploy/overlays/$(or $(OVERLAY),default)

.PHONY: verify
verify: fmt-check lint gen-check layers deny ## Check formatting, clippy, generated files, layers and dependencies, and list what was skipped
	@if [ -f target/skipped-checks ]; then cat target/skipped-checks; else echo "skipped: nothing"; fi

.PHONY: fmt-check
fmt-check:
	$(CARGO) fmt --all -- --check

.PHONY: lint
lint:
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

.PHONY: gen
gen: xtask ## Write the generated files (crds/, the tables of kustomize)
	$(XTASK) gen
	cd hack/kustomize && GOWORK=off GOFLAGS= go run .

.PHONY: gen-check
gen-check: xtask
	$(XTASK) gen --check
	cd hack/kustomize && GOWORK=off GOFLAGS= go run . --check

.PHONY: layers
layers: xtask
	$(XTASK) layers
	$(XTASK) tidy

CARGO_DENY_VERSION := 0.20.2
DENY := $(WEIR_CACHE_DIR)/tools/cargo-deny-$(CARGO_DENY_VERSION)/bin/cargo-deny
$(DENY):
	@echo "installing cargo-deny $(CARGO_DENY_VERSION) into the cache (some minutes, once)"
	CARGO_PROFILE_DEV_DEBUG=0 $(CARGO) install cargo-deny --debug --version $(CARGO_DENY_VERSION) --locked --root $(WEIR_CACHE_DIR)/tools/cargo-deny-$(CARGO_DENY_VERSION)

.PHONY: deny
deny: $(DENY) ## Check licences, bans, sources and advisories of all dependencies (REQUIRE_ADVISORIES=1 fails where these are unknown)
	$(DENY) --log-level error --all-features check bans licenses sources
	@DENY=$(DENY) hack/advisories.sh

.PHONY: fault
fault: control-plane ## Kill the controllers at seeded moments and after each write, and disturb their peers (SEED=n, ROUNDS=n, ONLY=writes)
	@WEIR_BIN_DIR=$(CURDIR)/$(BIN) $(BIN)/e2e fault $(if $(SEED),--seed $(SEED)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(ONLY),--only $(ONLY))

.PHONY: attack
attack: control-plane ## Attack a tenant from another namespace, and compare the times and requests of both
	@WEIR_BIN_DIR=$(CURDIR)/$(BIN) $(BIN)/e2e attack

.PHONY: fuzz
fuzz: xtask ## Search for inputs that break a reader of foreign input, with the programs of the tests (SECONDS_EACH=30 SEED=n CRATE=name)
	@export WEIR_FUZZ_SECONDS=$(or $(SECONDS_EACH),30) WEIR_FUZZ_SEED=$(or $(SEED),$$(date +%s)); \
	  echo "searching for $$WEIR_FUZZ_SECONDS s with each test, from SEED=$$WEIR_FUZZ_SEED on"; \
	  $(XTASK) test --lanes 1 --threads 2 $(addprefix --crate ,$(CRATE)) fuzz_

# Runs one test with a seed, and prints what it says.
RANDOM_TEST = export WEIR_FUZZ_SEED=$(or $(SEED),$$(date +%s)) $(2); $(XTASK) test --lanes 1 --crate $(1) --show $(3) $(3)

.PHONY: fuzz-kustomize
fuzz-kustomize: xtask ## Compare builds of random trees with those of kustomize (TREES=2000 or SECONDS_EACH=n, SEED=n)
	@$(call RANDOM_TEST,kustomize,$(if $(SECONDS_EACH),WEIR_FUZZ_SECONDS=$(SECONDS_EACH),WEIR_FUZZ_TREES=$(or $(TREES),2000)),random_trees)

.PHONY: fuzz-helm
fuzz-helm: xtask ## Compare renders of random templates with those of helm (TEMPLATES=5000, SEED=n)
	@$(call RANDOM_TEST,helm,WEIR_FUZZ_TEMPLATES=$(or $(TEMPLATES),5000),random_templates)

.PHONY: fuzz-charts
fuzz-charts: xtask ## Compare renders of charts with random values with those of helm (VALUES=1000, SEED=n)
	@$(call RANDOM_TEST,helm,WEIR_FUZZ_VALUES=$(or $(VALUES),1000),random_values)

.PHONY: fuzz-subcharts
fuzz-subcharts: xtask ## Compare renders of random trees of charts with those of helm (CHARTS=1000, SEED=n, HELM=4)
	@$(call RANDOM_TEST,helm,WEIR_FUZZ_HELM=$(or $(HELM),3) WEIR_FUZZ_CHARTS=$(or $(CHARTS),1000),random_chart_trees)

.PHONY: fuzz-jinja
fuzz-jinja: xtask ## Compare renders of random templates with those of Jinja2 (TEMPLATES=5000, SEED=n)
	@$(call RANDOM_TEST,jinja,WEIR_FUZZ_TEMPLATES=$(or $(TEMPLATES),5000),random_templates)

.PHONY: bench-kustomize
bench-kustomize: build-weir ## Measure builds of kustomizations beside kustomize itself
	@WEIR_BIN_DIR=$(CURDIR)/$(BIN) $(BIN)/e2e bench-kustomize $(if $(QUICK),--quick)

.PHONY: bench-helm
bench-helm: build-weir ## Measure renders of Helm charts beside helm 3 and 4
	@WEIR_BIN_DIR=$(CURDIR)/$(BIN) $(BIN)/e2e bench-helm

.PHONY: bench-kluctl
bench-kluctl: control-plane build-weir ## Measure the commands of weir with kluctl projects (ITEMS=100,1000)
	@WEIR_BIN_DIR=$(CURDIR)/$(BIN) $(BIN)/e2e bench-kluctl $(if $(ITEMS),--items $(ITEMS))

.PHONY: bench-gitops
bench-gitops: control-plane ## Measure KluctlDeployments of gitops.kluctl.io while nothing changes (OBJECTS=50,200)
	@WEIR_BIN_DIR=$(CURDIR)/$(BIN) $(BIN)/e2e bench-gitops $(if $(OBJECTS),--objects $(OBJECTS))

.PHONY: bench-events
bench-events: control-plane ## Measure the notification-controller with 10,000 events a second (ALERTS=1,100,1000)
	@WEIR_BIN_DIR=$(CURDIR)/$(BIN) $(BIN)/e2e bench-events $(if $(ALERTS),--alerts $(ALERTS))

.PHONY: bench-sources
bench-sources: control-plane ## Measure the source-controller beside Git and nginx (OBJECTS=1,50,200,1000 ONLY=many,large,serving)
	@WEIR_BIN_DIR=$(CURDIR)/$(BIN) $(BIN)/e2e bench-sources $(if $(OBJECTS),--objects $(OBJECTS)) $(if $(ONLY),--only $(ONLY))

.PHONY: bench-kustomizations
bench-kustomizations: control-plane ## Measure Kustomizations beside Flux's controller, if it is built, and the API server alone (LOADS=50,200,1x1500,200@1 ROUNDS=3)
	@WEIR_BIN_DIR=$(CURDIR)/$(BIN) $(BIN)/e2e bench-kustomizations $(if $(LOADS),--loads $(LOADS)) $(if $(ROUNDS),--rounds $(ROUNDS))

.PHONY: bench
bench: control-plane bench-kustomize bench-helm bench-kluctl bench-gitops bench-events bench-sources bench-kustomizations ## Measure pairs of GitRepository and KluctlDeployment beside the API server alone (PAIRS=1,50,200x3), kustomizations, charts and projects
	@WEIR_BIN_DIR=$(CURDIR)/$(BIN) $(BIN)/e2e bench $(if $(PAIRS),--pairs $(PAIRS))

# Static programs for the images. cargo-zigbuild links and compiles C for other machines with zig; both come from PyPI, pinned by digest.
DIST_TARGETS := x86_64-unknown-linux-musl aarch64-unknown-linux-musl
DIST_CARGO := $(CARGO) zigbuild
ZIG := $(WEIR_CACHE_DIR)/tools/zig-$(shell sha256sum hack/zig/requirements.txt | cut -c1-12)
$(ZIG)/installed:
	@echo "installing zig and cargo-zigbuild into the cache (400 MB, once)"
	python3 -m venv --clear $(ZIG)
	$(ZIG)/bin/pip install --quiet --require-hashes --only-binary :all: --requirement hack/zig/requirements.txt
	@touch $@

.PHONY: dist-programs
dist-programs: $(if $(findstring zigbuild,$(DIST_CARGO)),$(ZIG)/installed)
	@PATH="$(ZIG)/bin:$$PATH" hack/static.sh "$(DIST_TARGETS)" $(DIST_CARGO) --release --locked --workspace --exclude xtask --exclude dist \
	  $(addprefix --bin ,$(CONTROLLERS) weir)

.PHONY: dist
dist: dist-programs ## Write the files of a release into target/dist (DIST_TARGETS="TRIPLE TRIPLE" REGISTRY=HOST/PATH SOURCE=URL)
	$(CARGO) build -q --locked --workspace --bin dist
	rm -rf target/dist
	target/debug/dist build --out target/dist $(foreach target,$(DIST_TARGETS),--programs target/$(target)/release) \
	  --time "$$(git log -1 --format=%ct)" --revision "$$(git rev-parse HEAD)" \
	  $(if $(REGISTRY),--registry "$(REGISTRY)") $(if $(SOURCE),--source "$(SOURCE)")

.PHONY: dist-demo
dist-demo: ## Play the demo with the programs of the images in target/dist, as their user and with a read-only root
	@[ -f target/dist/checksums.txt ] || { echo "there are no images in target/dist: run make dist first"; exit 1; }
	$(CARGO) build -q --locked --workspace --bin dist --bin e2e --bin testkit
	target/debug/testkit build
	rm -rf target/images
	target/debug/dist unpack --dir target/dist --out target/images
	@hack/image-demo.sh target/debug target/images

.PHONY: clean
clean: ## Remove build output (the cache of the control plane stays)
	$(CARGO) clean
	rm -rf .weir
