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
HIREDIS_SSL := $(call has,hiredis_ssl)

UUID_CFLAGS := $(call cflags,uuid)
UUID_LIBS := $(call libs,uuid)
HIREDIS_CFLAGS := $(call cflags,hiredis) $(if $(HIREDIS_SSL),-DCOORD_HAVE_HIREDIS_SSL)
HIREDIS_LIBS := $(call libs,hiredis $(if $(HIREDIS_SSL),hiredis_ssl))
PQ_CFLAGS := $(call cflags,libpq)
PQ_LIBS := $(call libs,libpq)
JANSSON_CFLAGS := $(call cflags,jansson)
JANSSON_LIBS := $(call libs,jansson)
MSGPACK_CFLAGS := $(call cflags,$(MSGPACK))
MSGPACK_LIBS := $(call libs,$(MSGPACK))
CMOCKA_LIBS := $(or $(call libs,cmocka),-lcmocka)

# ---- flags ---------------------------------------------------------------------------------

# Ours come before those of the caller, who therefore has the last word.
WARNINGS := -pedantic -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wundef \
  -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wcast-qual -Wcast-align \
  -Wwrite-strings -Wformat=2 -Wvla -Wswitch-enum -Wimplicit-fallthrough -Wnull-dereference \
  -Wdouble-promotion $(if $(filter 1,$(WERROR)),-Werror)

CFLAGS ?= $(if $(SAN),-O1 -g,-O2 -g -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
SAN_FLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer \
  $(if $(findstring undefined,$(SAN)),-fno-sanitize-recover=undefined))
BASE_FLAGS := -std=c11 -I. -fPIC -pthread -fno-common -fvisibility=hidden -MMD -MP $(WARNINGS) \
  -DCOORD_VERSION=\"$(VERSION)\" $(SAN_FLAGS)
HOST_FLAGS := -D_GNU_SOURCE $(UUID_CFLAGS) $(HIREDIS_CFLAGS) $(PQ_CFLAGS) $(JANSSON_CFLAGS)
TEST_FLAGS := -DCOORD_BUILD=\"$(abspath $(B))\"

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
	  $(patsubst $(B)/lib%.so,-l%,$(filter %.so,$^))

# ---- tests ---------------------------------------------------------------------------------

KINDS := unit contract fault integration trace sim arch
TEST_SRC := $(foreach kind,$(KINDS),$(wildcard tests/$(kind)/test_*.c))
TEST_BINS := $(patsubst tests/%.c,$(B)/tests/%,$(TEST_SRC))
SUPPORT_SRC := $(wildcard tests/support/*.c)
SIM_MAIN := $(wildcard tests/sim/main.c tests/sim/sim.c)
SIM_SRC := $(filter-out $(SIM_MAIN) tests/sim/test_%,$(wildcard tests/sim/*.c))
SIM := $(if $(SIM_MAIN),$(B)/tests/sim/sim)
BENCHES := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/bench/*.c))

$(B)/tests/libsupport.a: $(call obj,$(SUPPORT_SRC))
$(B)/tests/libsim.a: $(call obj,$(SIM_SRC))
$(B)/tests/libcli.a: $(call obj,$(filter-out $(CLI_MAIN),$(CLI_SRC)))

# A test is linked with the rooms that it includes, so that a room under repair does not stop
# the tests of another. The rest is linked with everything.
including = $(if $(TEST_SRC),$(shell grep -lE '^ *\# *include +"$(1)' $(TEST_SRC)))
with_backends := $(call including,(connections|electors|brokers)/($(subst $(space),|,$(BACKENDS))))
with_rooms := $(call including,(runtime|electors|brokers|connections)/)
with_support := $(if $(SUPPORT_SRC),$(call including,tests/support/($(subst $(space),|,$(patsubst tests/support/%.c,%,$(SUPPORT_SRC))))\.h))
with_sim := $(call including,tests/sim/)
with_cli := $(call including,cli/)
broad := $(filter-out tests/unit/%,$(TEST_SRC)) $(with_support) $(with_cli) $(with_sim)

# $(call libraries_of,SOURCE)
libraries_of = $(if $(filter $(1),$(with_cli)),$(B)/tests/libcli.a) \
  $(if $(filter $(1),$(with_sim)),$(if $(SIM_SRC),$(B)/tests/libsim.a)) \
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

$(BENCHES): $(B)/tests/%: $(B)/obj/tests/%.o $(if $(SUPPORT_SRC),$(B)/tests/libsupport.a) $(STATIC)
	$(say) LD $@
	$(call link_test)

.PHONY: clean help tests
tests: $(TEST_BINS) $(SIM) ## build the tests without running them

clean: ## remove build/
	rm -rf build $(B)

help: ## this list
	@$(AWK) -F ':.*## ' '/^[a-z][a-z -]*:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

-include $(wildcard $(B)/obj/*/*.d $(B)/obj/tests/*/*.d)
