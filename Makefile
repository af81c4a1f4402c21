# SPDX-License-Identifier: MIT
# GNU make. `make help` lists what can be asked for; CONTRIBUTING.md tells the rest.
#
#   V=1               show the commands
#   SAN=LIST          address,undefined | thread | ...: builds into build/san-LIST
#   BUILD=DIR         build somewhere else
#   WERROR=0|1        warnings are errors; the default is 1 in a git checkout and 0 in a tarball
#   DEPS=no           never install packages, only say which are missing

VERSION := $(shell cat VERSION)
SOVERSION := 0

PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
DESTDIR ?=
PKG_CONFIG ?= pkg-config
WERROR ?= $(if $(wildcard .git),1,0)
AWK ?= awk

comma := ,
empty :=
space := $(empty) $(empty)

SAN ?=
BUILD ?= build$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))
B := $(BUILD)

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-7s %s\n'
MAKEFLAGS += --no-print-directory
endif

.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
.DEFAULT_GOAL := all

# ---- libraries of others -------------------------------------------------------------------

has = $(shell $(PKG_CONFIG) --exists $(1) 2>/dev/null && echo 1)
cflags = $(shell $(PKG_CONFIG) --cflags $(1) 2>/dev/null)
libs = $(shell $(PKG_CONFIG) --libs $(1) 2>/dev/null)

MSGPACK := $(if $(call has,msgpack-c),msgpack-c,msgpack)
OPENSSL := $(call has,openssl)

UUID_CFLAGS := $(call cflags,uuid)
UUID_LIBS := $(call libs,uuid)
HIREDIS_CFLAGS := $(call cflags,hiredis) $(if $(OPENSSL),-DCOORD_HAVE_OPENSSL $(call cflags,openssl))
HIREDIS_LIBS := $(call libs,hiredis $(if $(OPENSSL),openssl))
PQ_CFLAGS := $(call cflags,libpq libcrypto)
PQ_LIBS := $(call libs,libpq libcrypto)
JANSSON_CFLAGS := $(call cflags,jansson)
JANSSON_LIBS := $(call libs,jansson)
MSGPACK_CFLAGS := $(call cflags,$(MSGPACK))
MSGPACK_LIBS := $(call libs,$(MSGPACK))
CMOCKA_LIBS := $(or $(call libs,cmocka),-lcmocka)

# ---- flags ---------------------------------------------------------------------------------

# Ours come before those of the caller, who therefore has the last word.
# A sanitizer's code hides from the compiler what it knows of ranges and of overlaps; the plain build
# checks the same sources, and there warnings are errors.
BLURRED := $(if $(findstring clang,$(CC)),,-Wno-format-truncation -Wno-restrict)
WARNINGS := -pedantic -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wundef \
  -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wcast-qual -Wcast-align \
  -Wwrite-strings -Wformat=2 -Wvla -Wswitch-enum -Wimplicit-fallthrough -Wnull-dereference \
  -Wdouble-promotion $(if $(SAN),$(BLURRED),$(if $(filter 1,$(WERROR)),-Werror))

CFLAGS ?= $(if $(SAN),-O1 -g,-O2 -g -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
SAN_FLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer \
  $(if $(findstring undefined,$(SAN)),-fno-sanitize-recover=undefined))
BASE_FLAGS := -std=c11 -I. -fPIC -pthread -fno-common -fvisibility=hidden -MMD -MP $(WARNINGS) \
  -DCOORD_VERSION=\"$(VERSION)\" $(SAN_FLAGS)
HOST_CFLAGS := $(sort $(UUID_CFLAGS) $(HIREDIS_CFLAGS) $(PQ_CFLAGS) $(JANSSON_CFLAGS) $(MSGPACK_CFLAGS))
HOST_FLAGS := -D_GNU_SOURCE $(HOST_CFLAGS)
# cmocka's assert_non_null() is not known to end a test.
TEST_FLAGS := -Wno-null-dereference -DCOORD_BUILD=\"$(abspath $(B))\"

COMPILE = $(CC) $(BASE_FLAGS) $(1) $(CPPFLAGS) $(CFLAGS)
LINK = $(CC) -pthread $(SAN_FLAGS) $(CFLAGS) $(LDFLAGS) -Wl,--as-needed
# Sanitizers leave their own names open.
LINK_SHARED = $(LINK) -shared $(if $(SAN),,-Wl,-z,defs) -Wl,-z,relro -Wl,-z,now

# ---- rooms ---------------------------------------------------------------------------------

# Each has a library of its own, so that who uses the one needs nothing of the other.
BACKENDS := redis postgres nats
redis_libs := $(HIREDIS_LIBS)
postgres_libs := $(PQ_LIBS)

# $(call files_of,BACKEND,SUFFIX)
files_of = $(wildcard connections/$(1)*.$(2) electors/$(1)*.$(2) brokers/$(1)*.$(2))
LOCAL := electors/memory* electors/file* brokers/memory* brokers/local* runtime/*

CORE_SRC := $(wildcard coord/*.c)
COORD_SRC := $(CORE_SRC) $(wildcard $(addsuffix .c,$(LOCAL)))
COORD_HEADERS := $(wildcard coord/*.h $(addsuffix .h,$(LOCAL)))
CLI_SRC := $(wildcard cli/*.c)
CLI_MAIN := $(wildcard cli/main.c)
EXAMPLE_SRC := $(wildcard examples/*.c)

obj = $(patsubst %.c,$(B)/obj/%.o,$(1))

# Those that have sources.
built := $(foreach backend,$(BACKENDS),$(if $(call files_of,$(backend),c),$(backend)))
STATIC := $(B)/libcoord.a $(patsubst %,$(B)/libcoord-%.a,$(built))
SHARED := $(B)/libcoord.so $(patsubst %,$(B)/libcoord-%.so,$(built))
PROGRAM := $(if $(CLI_MAIN),$(B)/coordctl)
EXAMPLES := $(patsubst examples/%.c,$(B)/examples/%,$(EXAMPLE_SRC))

.PHONY: all lib cli examples FORCE
all: lib cli examples ## the libraries, build/coordctl and the examples (the default)
lib: $(B)/libcoord-core.a $(STATIC) $(SHARED) ## the libraries alone
cli: $(PROGRAM) ## build/coordctl
examples: $(EXAMPLES) ## the programs to copy from

# What the objects were compiled with; another compiler or flag compiles them again.
$(B)/flags: FORCE
	@CC='$(CC)' PKG_CONFIG='$(PKG_CONFIG)' DEPS=no sh scripts/deps.sh ensure build
	@mkdir -p $(@D)
	@printf '%s\n' '$(call COMPILE,$(HOST_FLAGS)) $(LDFLAGS)' | cmp -s - $@ || \
	  printf '%s\n' '$(call COMPILE,$(HOST_FLAGS)) $(LDFLAGS)' >$@
FORCE:

# The core sees no operating system: strict C11, no feature macro.
$(B)/obj/coord/%.o: coord/%.c $(B)/flags
	$(say) CC $<
	@mkdir -p $(@D)
	$(Q)$(call COMPILE,$(MSGPACK_CFLAGS)) -c -o $@ $<

$(B)/obj/tests/%.o: tests/%.c $(B)/flags
	$(say) CC $<
	@mkdir -p $(@D)
	$(Q)$(call COMPILE,$(HOST_FLAGS) $(TEST_FLAGS)) -c -o $@ $<

$(B)/obj/%.o: %.c $(B)/flags
	$(say) CC $<
	@mkdir -p $(@D)
	$(Q)$(call COMPILE,$(HOST_FLAGS)) -c -o $@ $<

# Put in place in one step, as others may be linking with it.
$(B)/libcoord-core.a: $(call obj,$(CORE_SRC))
$(B)/libcoord.a: $(call obj,$(COORD_SRC))
$(B)/%.a:
	$(say) AR $@
	@mkdir -p $(@D)
	$(Q)rm -f $@.new && $(AR) rcsD $@.new $(filter %.o,$^) && mv -f $@.new $@

# The exported names are those that the headers mark COORD_API, and no other.
$(B)/libcoord.map: $(COORD_HEADERS) scripts/exports.awk
	@mkdir -p $(@D)
	$(Q)$(AWK) -v map=1 -f scripts/exports.awk $(COORD_HEADERS) >$@
$(B)/libcoord.so.$(SOVERSION): $(call obj,$(COORD_SRC)) $(B)/libcoord.map
	$(say) LD $@
	$(Q)$(LINK_SHARED) -Wl,-soname,$(@F) -Wl,--version-script=$(B)/libcoord.map -o $@.new \
	  $(filter %.o,$^) $(MSGPACK_LIBS) $(UUID_LIBS) && mv -f $@.new $@

define backend_rules
$(B)/libcoord-$(1).a: $(call obj,$(call files_of,$(1),c))
$(B)/libcoord-$(1).map: $(call files_of,$(1),h) scripts/exports.awk
	@mkdir -p $$(@D)
	$(Q)$(AWK) -v map=1 -f scripts/exports.awk $$(filter %.h,$$^) >$$@
$(B)/libcoord-$(1).so.$(SOVERSION): $(call obj,$(call files_of,$(1),c)) $(B)/libcoord-$(1).map \
    $(B)/libcoord.so
	$(say) LD $$@
	$(Q)$$(LINK_SHARED) -Wl,-soname,$$(@F) -Wl,--version-script=$(B)/libcoord-$(1).map \
	  -o $$@.new $$(filter %.o,$$^) -L$(B) -lcoord $($(1)_libs) $(UUID_LIBS) && mv -f $$@.new $$@
endef
$(foreach backend,$(built),$(eval $(call backend_rules,$(backend))))

$(B)/%.so: $(B)/%.so.$(SOVERSION)
	@ln -sf $(<F) $@

# One copy of libcoord in the process, which the backends that coordctl loads share with it.
$(B)/coordctl: $(call obj,$(CLI_SRC)) $(B)/libcoord.so | $(filter-out $(B)/libcoord.so,$(SHARED))
	$(say) LD $@
	$(Q)$(LINK) -Wl,-rpath,'$$ORIGIN' -o $@.new $(filter %.o,$^) -L$(B) -lcoord $(UUID_LIBS) \
	  -ldl && mv -f $@.new $@

# ---- examples: against the shared objects, so that they use what is exported and nothing else

# $(call includers,BACKEND,SOURCES): which of them include a header of it
includers = $(if $(2),$(shell grep -lE '^ *\# *include +["<](connections|electors|brokers)/$(1)' $(2)))
example = $(patsubst examples/%.c,$(B)/examples/%,$(1))
define example_rule
$(call example,$(call includers,$(1),$(EXAMPLE_SRC))) $(B)/examples/.$(1): $(B)/libcoord-$(1).so
endef
$(foreach backend,$(built),$(eval $(call example_rule,$(backend))))
$(EXAMPLES): $(B)/examples/%: $(B)/obj/examples/%.o $(B)/libcoord.so
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(LINK) -Wl,-rpath,'$$ORIGIN/..' -o $@ $< -L$(B) \
	  $(patsubst $(B)/lib%.so,-l%,$(filter %.so,$^)) \
	  $(if $(filter %libcoord-postgres.so,$^),$(PQ_LIBS))

# ---- tests ---------------------------------------------------------------------------------

KINDS := unit contract fault integration trace sim arch
TEST_SRC := $(foreach kind,$(KINDS),$(wildcard tests/$(kind)/test_*.c))
TEST_BINS := $(patsubst tests/%.c,$(B)/tests/%,$(TEST_SRC))
SUPPORT_SRC := $(wildcard tests/support/*.c)
SIM_MAIN := $(wildcard tests/sim/main.c)
SIM_SRC := $(filter-out $(SIM_MAIN) tests/sim/test_%,$(wildcard tests/sim/*.c))
# The same for whole agents.
AGENTS_MAIN := $(wildcard tests/sim/agents/main.c)
AGENTS_SRC := $(filter-out $(AGENTS_MAIN),$(wildcard tests/sim/agents/*.c))
AGENTS := $(if $(AGENTS_MAIN),$(B)/tests/sim/agents)
# One suite of cases for every elector.
SUITE_SRC := $(filter-out tests/contract/test_%,$(wildcard tests/contract/*.c))
SIM := $(if $(SIM_MAIN),$(B)/tests/sim/sim)
FUZZ_NAMES := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
REPLAYS := $(patsubst %,$(B)/tests/fuzz/replay_%,$(FUZZ_NAMES))
FUZZERS := $(patsubst %,$(B)/tests/fuzz/fuzz_%,$(FUZZ_NAMES))
VECTOR_FILES := $(patsubst tests/vectors/%.json,%,$(wildcard tests/vectors/*.json))
VECTORS := $(patsubst %,$(B)/tests/vectors_%,$(VECTOR_FILES))
BENCHES := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/bench/*.c))

$(B)/tests/libsupport.a: $(call obj,$(SUPPORT_SRC))
$(B)/tests/libsim.a: $(call obj,$(SIM_SRC))
$(B)/tests/libagents.a: $(call obj,$(AGENTS_SRC))
$(B)/tests/libsuite.a: $(call obj,$(SUITE_SRC))
$(B)/tests/libcli.a: $(call obj,$(filter-out $(CLI_MAIN),$(CLI_SRC)))

# A test is linked with the rooms that it includes, so that a room under repair does not stop
# the tests of another. The rest is linked with everything.
including = $(if $(TEST_SRC),$(shell grep -lE '^ *\# *include +"$(1)' $(TEST_SRC)))
with_backends := $(call including,(connections|electors|brokers)/($(subst $(space),|,$(BACKENDS))))
with_rooms := $(call including,(runtime|electors|brokers|connections)/)
# All but support.h, which needs nothing.
support_names := $(filter-out support,$(patsubst tests/support/%.h,%,$(wildcard tests/support/*.h)))
with_support := $(if $(support_names),$(call including,tests/support/($(subst $(space),|,$(support_names)))\.h))
with_sim := $(call including,tests/sim/[a-z]+\.h)
with_agents := $(call including,tests/sim/agents/)
with_suite := $(call including,tests/contract/)
with_cli := $(call including,cli/)
broad := $(filter-out tests/unit/%,$(TEST_SRC)) $(with_support) $(with_cli) $(with_sim) $(with_agents)

# $(call libraries_of,SOURCE)
libraries_of = $(if $(filter $(1),$(with_cli)),$(B)/tests/libcli.a) \
  $(if $(filter $(1),$(with_sim)),$(if $(SIM_SRC),$(B)/tests/libsim.a)) \
  $(if $(filter $(1),$(with_agents)),$(B)/tests/libagents.a) \
  $(if $(filter $(1),$(with_suite)),$(B)/tests/libsuite.a) \
  $(if $(filter $(1),$(broad)),$(if $(SUPPORT_SRC),$(B)/tests/libsupport.a) $(STATIC), \
  $(if $(filter $(1),$(with_backends)),$(STATIC), \
  $(if $(filter $(1),$(with_rooms)),$(B)/libcoord.a,$(B)/libcoord-core.a)))

link_test = $(Q)mkdir -p $(@D) && $(LINK) -o $@ $(filter %.o,$^) \
  -Wl,--start-group $(filter %.a,$^) -Wl,--end-group \
  $(1) $(HIREDIS_LIBS) $(PQ_LIBS) $(JANSSON_LIBS) $(MSGPACK_LIBS) $(UUID_LIBS) -ldl -lm

define test_rule
$(patsubst tests/%.c,$(B)/tests/%,$(1)): $(call obj,$(1)) $(call libraries_of,$(1))
endef
$(foreach source,$(TEST_SRC),$(eval $(call test_rule,$(source))))

$(TEST_BINS):
	$(say) LD $@
	$(call link_test,$(CMOCKA_LIBS))

$(B)/tests/sim/sim: $(call obj,$(SIM_MAIN) $(SIM_SRC)) $(STATIC)
	$(say) LD $@
	$(call link_test)

$(B)/tests/sim/agents: $(call obj,$(AGENTS_MAIN) $(AGENTS_SRC)) $(STATIC)
	$(say) LD $@
	$(call link_test)

$(BENCHES): $(B)/tests/%: $(B)/obj/tests/%.o $(if $(SUPPORT_SRC),$(B)/tests/libsupport.a) $(STATIC)
	$(say) LD $@
	$(call link_test,$(CMOCKA_LIBS))

# What looks into a broker is linked with all of them.
fuzz_broad := $(shell grep -lE '^ *\# *include +"brokers/' $(wildcard tests/fuzz/fuzz_*.c))
$(foreach name,$(FUZZ_NAMES),$(eval $(B)/tests/fuzz/replay_$(name) $(B)/tests/fuzz/fuzz_$(name): \
  $(if $(filter %/fuzz_$(name).c,$(fuzz_broad)),$(STATIC),$(B)/libcoord-core.a)))

$(REPLAYS): $(B)/tests/fuzz/replay_%: $(B)/obj/tests/fuzz/fuzz_%.o $(B)/obj/tests/fuzz/replay.o
	$(say) LD $@
	$(call link_test)

# tests/vectors/NAME.json is run by what NAME*.c and vectors.c make.
$(foreach file,$(VECTOR_FILES),$(eval $(B)/tests/vectors_$(file): \
  $(call obj,$(wildcard tests/vectors/$(file)*.c) tests/vectors/vectors.c) $(B)/libcoord-core.a))
$(VECTORS):
	$(say) LD $@
	$(call link_test,$(call libs,libcrypto))

$(FUZZERS): $(B)/tests/fuzz/fuzz_%: $(B)/obj/tests/fuzz/fuzz_%.o
	$(say) LD $@
	$(call link_test,-fsanitize=fuzzer)

# What tests find in their environment. TSan of older compilers wants addresses where they were.
still := $(if $(findstring thread,$(SAN)),$(shell setarch -R true 2>/dev/null && echo setarch -R))
ASAN_OPTIONS ?= detect_stack_use_after_return=1:strict_string_checks=1
UBSAN_OPTIONS ?= print_stacktrace=1
TSAN_OPTIONS ?= second_deadlock_stack=1
RUN = ASAN_OPTIONS='$(ASAN_OPTIONS)' UBSAN_OPTIONS='$(UBSAN_OPTIONS)' TSAN_OPTIONS='$(TSAN_OPTIONS)' \
  B='$(abspath $(B))' LOGS='$(abspath $(B))/logs' COORDCTL='$(abspath $(B))/coordctl' CC='$(CC)' \
  CXX='$(CXX)' MAKE='$(MAKE)' PKG_CONFIG='$(PKG_CONFIG)' \
  HEADER_FLAGS='$(strip $(HOST_CFLAGS))' $(still) sh tests/run.sh

# $(call items,BINARIES): "unit/test_uri: build/tests/unit/test_uri"
items = $(foreach binary,$(1),'$(patsubst $(B)/tests/%,%,$(binary)): $(binary)')
shell_items = $(foreach test,$(wildcard tests/$(1)/test_*.sh),'$(patsubst tests/%.sh,%,$(test)): sh $(test)')
replay_items = $(foreach name,$(FUZZ_NAMES),'fuzz/$(name): $(B)/tests/fuzz/replay_$(name) tests/fuzz/corpus/$(name)')
vector_items = $(foreach file,$(VECTOR_FILES),'vectors/$(file): $(B)/tests/vectors_$(file) tests/vectors/$(file).json')
of_kind = $(filter $(B)/tests/$(1)/%,$(TEST_BINS))
# They look at the libraries as they are shipped.
arch_items = $(if $(SAN)$(filter 0,$(ARCH)),,$(call items,$(call of_kind,arch)) $(call shell_items,arch))

QUICK := $(call of_kind,unit) $(filter %memory,$(call of_kind,contract))
# From what needs little to what needs much, so that the first failure is the plainest.
THOROUGH := $(foreach kind,unit contract trace sim fault integration,$(call of_kind,$(kind)))

.PHONY: tests check test check-sim check-backends interop sim bench deps demo
.PHONY: _check _test _check-backends _interop _demo _bench
tests: $(TEST_BINS) $(REPLAYS) $(VECTORS) $(SIM) $(AGENTS) ## build the tests without running them

deps: ## install what building and testing need (DEPS=no: only say so)
	@DEPS='$(DEPS)' CC='$(CC)' PKG_CONFIG='$(PKG_CONFIG)' sh scripts/deps.sh ensure $(or $(FOR),test)

# What is installed now is seen by the next make only.
with_deps = @DEPS='$(DEPS)' CC='$(CC)' CXX='$(CXX)' PKG_CONFIG='$(PKG_CONFIG)' sh scripts/deps.sh ensure $(1)

check: ## the quick tests: unit, contract on memory, simulator smoke, architecture
	$(call with_deps,test)
	@$(MAKE) _check
_check: lib cli $(QUICK) $(REPLAYS) $(VECTORS) $(SIM) $(AGENTS)
	@$(RUN) $(call items,$(QUICK)) $(call replay_items) $(call vector_items) \
	  $(call sim_items,$(SMOKE_SEEDS)) $(arch_items)

test: ## all tests, with real servers
	$(call with_deps,test)
	@$(MAKE) _test
_test: all tests
	@$(RUN) $(call items,$(THOROUGH)) $(call replay_items) $(call vector_items) \
	  $(call sim_items,$(SEEDS)) \
	  $(foreach kind,integration fault,$(call shell_items,$(kind))) $(arch_items)

check-backends: ## the tests that need a server: contract, fault, integration
	$(call with_deps,test)
	@$(MAKE) _check-backends
_check-backends: all tests
	@$(RUN) $(call items,$(foreach kind,contract fault integration,$(call of_kind,$(kind))))

interop: ## with eventsource-py: its messages over Redis, its suite for electors (PYTHON=PATH)
	$(if $(SAN),$(error make interop is for the plain build: Python is not made for SAN=$(SAN)))
	$(call with_deps,test)
	@$(MAKE) _interop
_interop: lib cli
	@DEPS='$(DEPS)' PYTHON='$(PYTHON)' $(RUN) 'interop/eventsource: sh tests/interop/run.sh'

SMOKE_SEEDS ?= 1000
SEEDS ?= 20000
FIRST ?= 1
sim_items = $(if $(SIM),'sim/seeds: sh tests/sim/seeds.sh $(SIM) $(AGENTS) $(1) $(FIRST)')

check-sim: $(SIM) $(AGENTS) $(call of_kind,sim) ## the simulators' tests and SEEDS of their schedules
	@$(RUN) $(call items,$(call of_kind,sim)) $(call sim_items,$(SEEDS))

STORE ?= all
sim: $(SIM) $(AGENTS) ## SEEDS=N schedules from FIRST=N on, of STORE=redis|file|postgres|agents|all
	$(if $(filter agents,$(STORE)),,$(SIM) --store $(STORE) --seeds $(SEEDS) --first $(FIRST) --jobs 2)
	$(if $(filter agents all,$(STORE)),$(AGENTS) --seeds $(SEEDS) --first $(FIRST) --jobs 2)

demo: ## a fleet on this host, with a kill -9 in it
	$(call with_deps,build)
	@$(MAKE) _demo
_demo: lib cli
	@$(B)/coordctl demo

bench: ## one comparable line for each measure
	$(call with_deps,bench)
	@$(MAKE) _bench
_bench: $(BENCHES) $(PROGRAM)
	@for bench in $(BENCHES); do COORDCTL='$(abspath $(B))/coordctl' $$bench || exit 1; done

# ---- looking at the source -----------------------------------------------------------------

SOURCES := $(wildcard $(addsuffix /*.[ch],coord connections electors brokers runtime cli examples))
TEST_SOURCES := $(wildcard tests/*/*.[ch] tests/*/*/*.[ch])
CLANG_FORMAT ?= clang-format
CLANG_TIDY ?= clang-tidy

.PHONY: lint format format-check tidy analyze fuzz cover
lint: format-check ## layers, style, contract words, links, formatting
	@$(AWK) -f tests/arch/layers.awk $(SOURCES)
	@$(AWK) -f tests/arch/style.awk $(SOURCES) $(TEST_SOURCES)
	@$(AWK) -f tests/arch/contracts.awk $(filter %.h,$(SOURCES))
	@$(AWK) -f tests/arch/links.awk $(wildcard *.md docs/*.md docs/*/*.md) $(filter %.h,$(SOURCES))

# Releases of clang-format differ; .clang-format is for this one.
FORMAT_RELEASE := 14
format-check:
	@case "$$($(CLANG_FORMAT) --version 2>&1)" in \
	*" $(FORMAT_RELEASE)."*) $(CLANG_FORMAT) --dry-run -Werror $(SOURCES) $(TEST_SOURCES) ;; \
	*) echo "formatting is not checked: there is no clang-format $(FORMAT_RELEASE) here" ;; \
	esac

format: ## format all sources
	$(CLANG_FORMAT) -i $(SOURCES) $(TEST_SOURCES)

# One by one, as what the analyser learns in one file confuses it in the next.
tidy: ## clang-tidy
	@printf '%s\n' $(filter %.c,$(SOURCES)) | xargs -n 1 -P 2 sh -c \
	  '$(CLANG_TIDY) --quiet $$0 -- -std=c11 -I. $(HOST_FLAGS) -DCOORD_VERSION=\"0\" 2>/dev/null'

analyze: ## gcc's own analyser over the libraries
	$(MAKE) BUILD=build/analyze CC=gcc WERROR=0 CFLAGS='-O1 -g -fanalyzer' lib

SECONDS ?= 60
fuzz: ## SECONDS=N of each fuzz target (clang)
	$(MAKE) CC=clang BUILD=build/fuzz SAN=fuzzer-no-link,address,undefined fuzz-targets
	@for name in $(FUZZ_NAMES); do \
	  mkdir -p build/fuzz/corpus/$$name && \
	  build/fuzz/tests/fuzz/fuzz_$$name -max_total_time=$(SECONDS) -max_len=8192 -len_control=50 \
	    -print_final_stats=1 -artifact_prefix=build/fuzz/$$name- build/fuzz/corpus/$$name \
	    tests/fuzz/corpus/$$name || exit 1; \
	done
.PHONY: fuzz-targets
fuzz-targets: $(FUZZERS)

cover: ## line coverage of all tests, for each file
	$(MAKE) BUILD=build/cover CFLAGS='-O0 -g --coverage' LDFLAGS=--coverage ARCH=0 test; \
	code=$$?; sh scripts/coverage.sh build/cover; exit $$code

# ---- installing ----------------------------------------------------------------------------

.PHONY: install uninstall installcheck dist distcheck
PUBLIC_HEADERS = $(shell sh scripts/public-headers.sh)
headers_to := $(INCLUDEDIR)/coord-$(SOVERSION)
MAN_PAGES := $(wildcard docs/man/*.[1-9])
man_to = $(MANDIR)/man$(patsubst .%,%,$(suffix $(1)))/$(notdir $(1))

# Where an installed coordctl finds its libraries: beside it where they lie under one prefix, so that
# the whole can be moved; nowhere else where the system looks anyhow.
run_path := $(strip $(if $(filter $(PREFIX)/bin,$(BINDIR)),$(if $(filter $(PREFIX)/%,$(LIBDIR)), \
  $$ORIGIN/../$(patsubst $(PREFIX)/%,%,$(LIBDIR)),$(LIBDIR)),$(LIBDIR)))

$(B)/libcoord.pc: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(LIBDIR)' 'includedir=$(INCLUDEDIR)' '' \
	  'Name: libcoord' 'Description: leader election with fencing' 'Version: $(VERSION)' \
	  'Requires.private: uuid' 'Cflags: -I$${includedir}/coord-$(SOVERSION)' \
	  'Libs: -L$${libdir} -lcoord' 'Libs.private: -pthread' >$@
redis_requires := hiredis$(if $(OPENSSL), openssl)
postgres_requires := libpq libcrypto
$(B)/libcoord-%.pc: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(LIBDIR)' 'includedir=$(INCLUDEDIR)' '' \
	  'Name: libcoord-$*' 'Description: libcoord on $*' 'Version: $(VERSION)' \
	  'Requires: libcoord = $(VERSION)' 'Requires.private: $($*_requires)' \
	  'Cflags: -I$${includedir}/coord-$(SOVERSION)' 'Libs: -L$${libdir} -lcoord-$*' >$@

$(B)/installed/coordctl: $(call obj,$(CLI_SRC)) $(B)/libcoord.so FORCE
	@mkdir -p $(@D)
	$(Q)$(LINK) -Wl,-rpath,'$(run_path)' -o $@ $(filter %.o,$^) -L$(B) -lcoord $(UUID_LIBS) -ldl

# The loader finds what is new in a folder of its own only after ldconfig.
PC := $(B)/libcoord.pc $(patsubst %,$(B)/libcoord-%.pc,$(built))
install: lib $(if $(PROGRAM),$(B)/installed/coordctl) $(PC) ## PREFIX, DESTDIR, BINDIR, LIBDIR, INCLUDEDIR, MANDIR
	install -d '$(DESTDIR)$(BINDIR)' '$(DESTDIR)$(LIBDIR)/pkgconfig' '$(DESTDIR)$(headers_to)'
	$(if $(PROGRAM),install -m 755 $(B)/installed/coordctl '$(DESTDIR)$(BINDIR)/coordctl')
	install -m 644 $(STATIC) '$(DESTDIR)$(LIBDIR)'
	install -m 755 $(SHARED:=.$(SOVERSION)) '$(DESTDIR)$(LIBDIR)'
	for library in $(notdir $(SHARED)); do \
	  ln -sf $$library.$(SOVERSION) '$(DESTDIR)$(LIBDIR)'/$$library || exit 1; done
	install -m 644 $(PC) '$(DESTDIR)$(LIBDIR)/pkgconfig'
	for header in $(PUBLIC_HEADERS); do \
	  install -D -m 644 $$header '$(DESTDIR)$(headers_to)'/$$header || exit 1; done
	$(foreach page,$(MAN_PAGES),install -D -m 644 $(page) '$(DESTDIR)$(call man_to,$(page))' &&) true
	@PATH="$$PATH:/usr/sbin:/sbin"; if [ -z '$(DESTDIR)' ] && \
	  ldconfig -vNX 2>/dev/null | grep -q '^$(LIBDIR):'; then ldconfig; fi

uninstall: ## what install put there
	rm -f '$(DESTDIR)$(BINDIR)/coordctl' $(foreach page,$(MAN_PAGES),'$(DESTDIR)$(call man_to,$(page))')
	rm -f $(foreach library,$(notdir $(SHARED)),'$(DESTDIR)$(LIBDIR)/$(library)' \
	  '$(DESTDIR)$(LIBDIR)/$(library).$(SOVERSION)') \
	  $(patsubst $(B)/%,'$(DESTDIR)$(LIBDIR)/%',$(STATIC)) \
	  $(patsubst $(B)/%,'$(DESTDIR)$(LIBDIR)/pkgconfig/%',$(PC))
	rm -rf '$(DESTDIR)$(headers_to)'

installcheck: lib cli ## install to a temporary place, build and run from there, uninstall
	@$(RUN) 'arch/test_install: sh tests/arch/test_install.sh'

DIST := coord-$(VERSION)
dist: ## build/coord-VERSION.tar.gz
	@mkdir -p $(B)
	git archive --format=tar.gz --prefix=$(DIST)/ -o $(B)/$(DIST).tar.gz HEAD

distcheck: dist ## unpack it elsewhere, build, check, installcheck
	rm -rf $(B)/distcheck && mkdir -p $(B)/distcheck
	tar -xzf $(B)/$(DIST).tar.gz -C $(B)/distcheck
	$(MAKE) -C $(B)/distcheck/$(DIST) BUILD=build check installcheck

# ---- housekeeping --------------------------------------------------------------------------

.PHONY: clean help
clean: ## remove what was built
	rm -rf build $(B)

help: ## this list
	@$(AWK) -F ':.*## ' '/^[a-z][a-z -]*:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@sed -n 's/^#   \([A-Z][A-Z0-9]*=.*\)/  \1/p' $(firstword $(MAKEFILE_LIST))

-include $(wildcard $(B)/obj/*/*.d $(B)/obj/tests/*/*.d $(B)/obj/tests/*/*/*.d)
