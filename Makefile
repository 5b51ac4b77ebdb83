# make demo   sets everything up and reproduces a published study
# make test   sets everything up and runs every test but those that are slow
# make test-slow  tests that fill disks, kill processes, limit memory
# make test-tls   QUIC transfers with true TLS beside those of the simulator
# make lint   format, clippy, documentation, ruff, mypy, the layers of the package, its stubs
# make faults  plants faults in the crates, in one build, and reports which their tests miss
# make reference  makes what is made in docs again: reference, disciplines, conformance
# make studies    docs/studies: the results of every published study; the pictures of README.md
# make lab      docs/lab/index.html: the live lab (needs the Rust target wasm32-wasip1)
# make walks   adds a discipline, a control, a workload, a metric and a change as CONTRIBUTING.md says
# make wheel  builds wheel and source package, and tries them in empty environments (network);
#             QUICK=1: from what `make test` built, in an environment without extras
# make site    docs as a web site: site/index.html
# make package packs the crates that others can use, and builds them from the packages
# make parity     docs/studies/parity.md: the grid with real packets (an hour and a half)
# make gallery    docs/images/gallery: the pictures of docs/gallery.md, from the code there
# make characterize  the example results of `aqmlab characterize` in docs again
# make evaluate   the example results of `aqmlab evaluate` in docs again
# make bench-disciplines  nanoseconds for a packet through each queue discipline
# make bench-controls     instructions for a packet by congestion control (needs valgrind)
# make bench-steering     steps of a steered run for each CPU second, over 10,000 changes
# make profile          where the engine's CPU time goes (needs perf)
# make fuzz   random scenarios, with a seed of the day: for MINUTES=10, or as many as COUNT says
# make fuzz-parsers  INPUTS=100000 inputs for each parser, with a seed of the day
# make budget   instructions per packet and peak heap against crates/budget.toml (needs valgrind)
# make bench  how fast the engine is on this machine

PYTHON ?= python3
# Tests at a time.
JOBS ?= $(shell nproc)
# Real packets keep time, so other tests beside them take only what they leave of the processors
# (SCHED_IDLE of Linux; elsewhere there are no real packets).
IDLE := $(shell command -v chrt > /dev/null && echo chrt --idle 0)
BESIDE :=
VENV := .venv
BIN := $(VENV)/bin
# The tests of a file share what it prepares.
PYTEST := $(BIN)/python -m pytest --dist loadfile
# Files with tests of a mark: collecting all files takes each process a few seconds.
PACKETS = $(shell grep -l real_packets python/tests/test_*.py)
SLOW = $(shell grep -l mark.slow python/tests/test_*.py)
# rustfmt by name: modules that a macro declares are not found from lib.rs.
RUSTFMT := rustfmt --edition 2024
RUST := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name Cargo.toml)
# Crates that others can use.
PUBLISHED := -p aqmlab-core -p aqmlab-aqm -p aqmlab-tcp
PYTHON_FILES := python studies tools examples
RUST_FILES := $(filter %.rs,$(RUST)) $(shell find examples -name '*.rs')

export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_QUIET := 1
# Some machines set it; every process would then compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo lab site wheel fuzz fuzz-ranges fuzz-parsers test tests-compiled test-rust test-python test-packets test-slow test-slow-packets test-slow-rest test-tls faults walks package lint lint-rust lint-python format bench budget bench-controls bench-steering bench-disciplines profile reference studies parity characterize evaluate gallery setup clean

demo: $(VENV)/.installed
	rm -rf results/demo
	$(BIN)/aqmlab reproduce jarvinen2014 --only paper --replications 100 --out results/demo
	@echo "The whole study, with its experiments: $(BIN)/aqmlab reproduce jarvinen2014"

# The engine is built while tests are compiled.
test:
	@$(MAKE) --no-print-directory -j 2 tests-compiled $(VENV)/.installed
	@$(MAKE) --no-print-directory -j 3 test-packets test-rust test-python BESIDE="$(IDLE)"

# With the programs and shared libraries of examples, beside which Python's tests set the same in Python.
tests-compiled:
	cargo test --workspace --quiet --no-run
	cargo build --workspace --quiet --profile test --bins --examples

test-rust:
	MAKEFLAGS= $(BESIDE) cargo test --workspace --quiet

test-python: $(VENV)/.tools
	$(BESIDE) $(PYTEST) -n $(JOBS) -m "not real_packets and not slow"

# Two at a time: most wait for their packets, and more would wait for a processor.
test-packets: $(VENV)/.tools
	$(PYTEST) -n 2 -m "real_packets and not slow" -rR $(PACKETS)

test-slow: $(VENV)/.tools
	@$(MAKE) --no-print-directory -j 2 test-slow-packets test-slow-rest BESIDE="$(IDLE)"

test-slow-packets: $(VENV)/.tools
	$(PYTEST) -n 2 -m "slow and real_packets" -rR $(SLOW)

test-slow-rest: $(VENV)/.tools
	$(BESIDE) $(PYTEST) -n $(JOBS) -m "slow and not real_packets" $(SLOW)

# With rustls, for which the QUIC libraries are built again.
test-tls:
	cargo test --quiet -p aqmlab-quic --features tls --lib --test tls

# One half of the checks beside the other: each is mostly one process.
lint: $(VENV)/.installed $(VENV)/.tools
	@$(MAKE) --no-print-directory -j 2 lint-rust lint-python

lint-rust:
	@echo "rustfmt --check"
	@$(RUSTFMT) --check $(RUST_FILES)
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --quiet $(PUBLISHED) -p aqmlab-sim -p aqmlab-emu -p aqmlab-quic
	cargo check --quiet --no-default-features -p aqmlab-core -p aqmlab-aqm
	! cargo tree --workspace --exclude aqmlab-quic | grep -E " (ring|rustls) v"
	$(PYTHON) crates/faults.py --check
	$(PYTHON) crates/structure.py

lint-python: $(VENV)/.installed $(VENV)/.tools
	$(BIN)/ruff format --check $(PYTHON_FILES)
	$(BIN)/ruff check $(PYTHON_FILES)
	$(BIN)/mypy --strict python/aqmlab python/tests/typed_mistakes.py studies/aqmlab_studies tools examples/codel.py
	$(BIN)/lint-imports
	$(BIN)/stubtest aqmlab._core --mypy-config-file .ci/stubtest.ini --concise

faults:
	$(PYTHON) crates/faults.py

walks:
	$(PYTHON) crates/walks.py

wheel: $(VENV)/.created
	.ci/wheel $(BIN) $(if $(QUICK),quick)

# Sphinx lives apart: nothing else needs it.
site: setup
	test -x $(BIN)/sphinx-build || PIP_CONSTRAINT= $(BIN)/python -m pip install -r docs/requirements.txt
	$(BIN)/sphinx-build -q -W --keep-going -b html docs site

package:
	cargo package $(PUBLISHED)

format: $(VENV)/.tools
	@$(RUSTFMT) $(RUST_FILES)
	$(BIN)/ruff format $(PYTHON_FILES)
	$(BIN)/ruff check --fix $(PYTHON_FILES)

# Built like the tests (optimised a little, with debug assertions and overflow checks) and with
# them: of the whole workspace, or else cargo builds the crates with other features once more.
FUZZ_BUILD := cargo build --quiet --profile test --workspace --examples
FUZZ := $(or $(CARGO_TARGET_DIR),target)/debug/examples/random_scenarios
MINUTES ?= 10
SEED ?= $(shell date -u +%Y%m%d)
INPUTS ?= 100000

fuzz:
	@echo "random scenarios of seed $(SEED)"
	$(FUZZ_BUILD)
	$(FUZZ) --seed $(SEED) $(if $(COUNT),--count $(COUNT),--minutes $(MINUTES))

fuzz-ranges:
	$(FUZZ_BUILD)
	$(FUZZ) --ranges

fuzz-parsers:
	AQMLAB_SEED=$(SEED) AQMLAB_INPUTS=$(INPUTS) cargo test --quiet --workspace --test parsers

# What is measured is what a wheel has; the environment keeps it until the next change.
bench: $(VENV)/.installed
	@$(INSTALL) --release
	$(BIN)/python -m tools.bench --study

budget:
	$(PYTHON) crates/budget.py

bench-controls:
	cargo build --release --quiet -p aqmlab-sim --example steady
	$(PYTHON) crates/aqmlab-sim/benches/controls.py

profile:
	$(PYTHON) crates/profile.py

bench-steering: $(VENV)/.installed
	$(BIN)/python crates/aqmlab-sim/benches/steering.py

bench-disciplines:
	cargo bench -p aqmlab-aqm
	$(PYTHON) crates/aqmlab-aqm/benches/table.py

characterize: $(VENV)/.installed
	$(BIN)/python -m tools.characterize_example docs/characterize-results.md

evaluate: $(VENV)/.installed
	$(BIN)/python -m tools.evaluate_example docs/evaluate-results.md

gallery: $(VENV)/.installed
	$(BIN)/python -m tools.gallery

reference: $(VENV)/.installed
	$(BIN)/aqmlab explain --markdown > docs/reference.md
	$(BIN)/python -m tools.discipline_pages docs
	$(BIN)/python -m tools.controls docs/images
	$(BIN)/aqmlab conformance --markdown > docs/conformance-results.md

# The target is part of rustup: `rustup target add wasm32-wasip1`.
lab:
	cargo build --quiet --profile web --target wasm32-wasip1 -p aqmlab-web
	$(PYTHON) crates/aqmlab-web/build.py

studies: $(VENV)/.installed
	rm -rf results/docs
	$(BIN)/python -m tools.study_pages docs
	$(BIN)/python -m tools.since docs
	$(BIN)/aqmlab study examples/call.toml --figures --out results/docs/call > results/docs/call.txt
	cp results/docs/call/figures/overview.svg docs/images/call.svg

parity: $(VENV)/.installed
	$(BIN)/python -m tools.parity docs/studies/parity.md

setup: $(VENV)/.installed $(VENV)/.tools

clean:
	rm -rf $(VENV) target python/aqmlab/*.so

# Installed in place, from the profile that builds in a third of the time (`dev`, Cargo.toml): Python files
# need no second install. Wheels have the profile `release`.
INSTALL := PATH="$(CURDIR)/$(BIN):$$PATH" VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(BIN)/maturin develop \
	$(if $(MAKE_TERMOUT),,--quiet)

# The stamps say which step was done after the last change of what it needs.
$(VENV)/.created: constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("aqmlab needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --no-compile maturin
	touch $@

# What reports need, one requirement a line: pip installs it while cargo builds.
REQUIRED := import tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	print(*p["dependencies"], *p["optional-dependencies"]["report"], sep="\n")

$(VENV)/.installed: $(VENV)/.created pyproject.toml README.md $(RUST)
	@echo "Building the engine, and installing packages (a minute or two the first time) ..."
	@$(BIN)/python -c '$(REQUIRED)' > $(VENV)/required.txt
	@$(BIN)/python -m pip install --no-compile -r $(VENV)/required.txt & \
		$(INSTALL) --skip-install; built=$$?; wait $$! && exit $$built
	@$(INSTALL) --extras report
	touch $@

# What is built already is built no second time: this installs the extra `dev`.
$(VENV)/.tools: $(VENV)/.installed
	@$(INSTALL) --extras dev
	touch $@
