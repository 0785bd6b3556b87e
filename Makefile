# Runnel: everything by name. `make help` lists the names.
#
# The build itself is CMake and Ninja under build/; what is missing of Debian's packages
# (packages.txt) is installed first where that is allowed, and named otherwise.
BUILD ?= build/release
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
CTEST = ctest --test-dir
CMAKE_FLAGS ?=

.PHONY: all everything help deps stock configure train examples test check test-gpu bench lite aarch64 install deb wheel docs asan ubsan tsan format lint fuzz fuzz-ops coverage clean

all: configure  ## Build the library, the command, the Python client and the examples
	@ninja -C $(BUILD) -j $(JOBS) product
	@cat $(BUILD)/cuda_part.txt

everything: configure  # that, and the tests
	@ninja -C $(BUILD) -j $(JOBS)

help:  ## Show this list
	@sed -n 's/^\([a-z-]*\):.*##  *\(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

deps:  ## Install the Debian packages the build needs
	@tools/deps.sh

stock:  ## Install stock TensorFlow under build/, for the tests that compare with it
	@tools/stock.sh

configure: deps
	@cmake -S . -B $(BUILD) -G Ninja $(CMAKE_FLAGS) >$(BUILD).log 2>&1 || (mkdir -p $(BUILD); cmake -S . -B $(BUILD) -G Ninja $(CMAKE_FLAGS))
	@ln -sf $(BUILD)/compile_commands.json compile_commands.json

train: all  ## Train a classifier of handwritten digits
	@$(BUILD)/examples/digits build/train

examples: everything  ## Run the examples and check what they learn
	@$(CTEST) $(BUILD) --output-on-failure -j $(JOBS) -L examples

test: stock configure  ## Build and run every test: structure, then the quick tests, then the slow ones
	@tools/deps.sh tests
	@tools/test.sh $(BUILD) $(JOBS) structure build quick slow

check: configure  ## The same without the slow tests
	@tools/test.sh $(BUILD) $(JOBS) structure build quick

test-gpu: everything  ## The tests that need a GPU, with compute-sanitizer
	@tests/gpu/card.sh $(BUILD)

bench: all  ## Measure against stock TensorFlow, side by side (ARGS=ops: single ops; nets: networks, and other libraries)
	@bench/run.sh $(BUILD) $(ARGS)

# A library for one graph: GRAPH is a frozen GraphDef, LITE_ISA the generation of processors (base, avx2, avx512).
LITE_ISA ?= avx2
lite: configure  ## Build a small library for the ops of one graph (GRAPH=model.pb)
	@tools/lite.sh $(BUILD) "$(GRAPH)" $(LITE_ISA) $(JOBS)

aarch64:  ## Build for 64-bit ARM with a cross compiler, and test the kernels under qemu
	@tools/aarch64.sh $(JOBS)

install: all  ## Install under PREFIX
	@cmake --install $(BUILD) --prefix $(PREFIX) --strip

deb: all  ## Make Debian packages of what is built, under build/dist
	@[ ! -e $(BUILD)/python/runnel ] || ninja -C $(BUILD) runnel_python_stubs
	@tools/deb.sh $(BUILD) build/dist

wheel: deps  ## Make a wheel for every CPython here, with the libraries it needs inside, under build/dist
	@tools/onednn.sh build/onednn $(JOBS)
	@python3 python/tools/make_wheel.py --onednn build/onednn --build build/wheel --out build/dist

docs: all  ## Build the documentation as a site with search, under build/docs
	@tools/deps.sh docs
	@python3 tools/docs/site.py $(BUILD) build/docs

asan:  ## Run the tests under the address sanitizer
	@$(MAKE) check BUILD=build/asan CMAKE_FLAGS="-DRN_SANITIZE=address"
ubsan:  ## ... the undefined-behaviour sanitizer
	@$(MAKE) check BUILD=build/ubsan CMAKE_FLAGS="-DRN_SANITIZE=undefined"
tsan:  ## ... the thread sanitizer
	@$(MAKE) check BUILD=build/tsan CMAKE_FLAGS="-DRN_SANITIZE=thread -DRN_ISA_ONLY=native"

fuzz:  ## Build the fuzz targets and run each for a minute
	@tools/fuzz.sh

fuzz-ops: stock all  ## Compare drawn calls of every op with stock TensorFlow, for ten minutes
	@build/venv/bin/python tests/fuzz_ops/fuzz_ops.py --library $(BUILD)/libtensorflow.so.2 \
	  --seconds $${FUZZ_SECONDS:-600} --seed $${FUZZ_SEED:-$$(date +%Y%m%d)} --verbose

coverage:  ## Line coverage of the tests
	@tools/coverage.sh

# clang-format moves one line of some macro lists per pass: until nothing changes.
format:  ## Format every C file
	@for pass in $$(seq 40); do \
	  git ls-files '*.c' '*.h' | xargs clang-format -i; \
	  tests/house/format.sh >/dev/null; [ $$? = 1 ] || break; \
	done

lint: configure  ## Static checks: includes, clang-tidy
	@tools/check_includes.sh
	@git ls-files -co --exclude-standard 'src/*.c' 'cli/*.c' | xargs -n 16 clang-tidy -p $(BUILD) --quiet --extra-arg=-Wno-unknown-warning-option

clean:  ## Remove what was built
	@rm -rf build/release build/asan build/ubsan build/tsan build/fuzz build/coverage build/docs build/wheel build/dist
