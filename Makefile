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
HIREDIS_LIBS := $(call libs,hiredis $(if $(HIREDIS_SSL),hiredis_ssl openssl))
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
HOST_FLAGS := -D_GNU_SOURCE $(UUID_CFLAGS) $(HIREDIS_CFLAGS)
TEST_FLAGS := -DCOORD_BUILD=\"$(abspath $(B))\"

COMPILE = $(CC) $(BASE_FLAGS) $(1) $(CPPFLAGS) $(CFLAGS)
LINK = $(CC) -pthread $(SAN_FLAGS) $(CFLAGS) $(LDFLAGS) -Wl,--as-needed
# Sanitizers leave their own names open.
LINK_SHARED = $(LINK) -shared $(if $(SAN),,-Wl,-z,defs) -Wl,-z,relro -Wl,-z,now

# ---- rooms ---------------------------------------------------------------------------------

CORE_SRC := $(wildcard coord/*.c)
COORD_SRC := $(CORE_SRC) $(wildcard electors/memory*.c electors/file*.c brokers/memory*.c \
  brokers/local*.c runtime/*.c)
REDIS_SRC := $(wildcard connections/redis*.c electors/redis*.c brokers/redis*.c)
CLI_SRC := $(wildcard cli/*.c)
CLI_MAIN := $(wildcard cli/main.c cli/coordctl.c)
EXAMPLE_SRC := $(wildcard examples/*.c)

obj = $(patsubst %.c,$(B)/obj/%.o,$(1))

COORD_HEADERS := $(wildcard coord/*.h electors/memory*.h electors/file*.h brokers/memory*.h \
  brokers/local*.h runtime/*.h)
REDIS_HEADERS := $(wildcard connections/redis*.h electors/redis*.h brokers/redis*.h)

STATIC := $(if $(COORD_SRC),$(B)/libcoord.a) $(if $(REDIS_SRC),$(B)/libcoord-redis.a)
SHARED := $(if $(COORD_SRC),$(B)/libcoord.so) $(if $(REDIS_SRC),$(B)/libcoord-redis.so)
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
$(B)/libcoord-redis.a: $(call obj,$(REDIS_SRC))
$(B)/%.a:
	$(say) AR $@
	@mkdir -p $(@D)
	$(Q)rm -f $@.new && $(AR) rcsD $@.new $(filter %.o,$^) && mv -f $@.new $@

# The exported names are those that the headers mark COORD_API, and no other.
$(B)/libcoord.map: $(COORD_HEADERS) scripts/exports.awk
	@mkdir -p $(@D)
	$(Q)$(AWK) -v map=1 -f scripts/exports.awk $(COORD_HEADERS) >$@
$(B)/libcoord-redis.map: $(REDIS_HEADERS) scripts/exports.awk
	@mkdir -p $(@D)
	$(Q)$(AWK) -v map=1 -f scripts/exports.awk $(REDIS_HEADERS) >$@

$(B)/libcoord.so.$(SOVERSION): $(call obj,$(COORD_SRC)) $(B)/libcoord.map
	$(say) LD $@
	$(Q)$(LINK_SHARED) -Wl,-soname,$(@F) -Wl,--version-script=$(B)/libcoord.map -o $@.new \
	  $(filter %.o,$^) $(MSGPACK_LIBS) $(UUID_LIBS) && mv -f $@.new $@
$(B)/libcoord-redis.so.$(SOVERSION): $(call obj,$(REDIS_SRC)) $(B)/libcoord-redis.map \
    $(B)/libcoord.so
	$(say) LD $@
	$(Q)$(LINK_SHARED) -Wl,-soname,$(@F) -Wl,--version-script=$(B)/libcoord-redis.map -o $@.new \
	  $(filter %.o,$^) -L$(B) -lcoord $(HIREDIS_LIBS) $(UUID_LIBS) && mv -f $@.new $@
$(B)/%.so: $(B)/%.so.$(SOVERSION)
	@ln -sf $(<F) $@

# One copy of libcoord in the process, which the backends that coordctl loads share with it.
$(B)/coordctl: $(call obj,$(CLI_SRC)) $(B)/libcoord.so | $(filter-out $(B)/libcoord.so,$(SHARED))
	$(say) LD $@
	$(Q)$(LINK) -Wl,-rpath,'$$ORIGIN' -o $@.new $(filter %.o,$^) -L$(B) -lcoord $(UUID_LIBS) \
	  -ldl && mv -f $@.new $@

# ---- examples: against the shared objects, so that they use what is exported and nothing else

redis_examples := $(if $(EXAMPLE_SRC),$(shell grep -lE '^ *# *include +["<](connections|electors|brokers)/redis' $(EXAMPLE_SRC)))
$(patsubst examples/%.c,$(B)/examples/%,$(redis_examples)): $(B)/libcoord-redis.so
$(EXAMPLES): $(B)/examples/%: $(B)/obj/examples/%.o $(B)/libcoord.so
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(LINK) -Wl,-rpath,'$$ORIGIN/..' -o $@ $< -L$(B) \
	  $(if $(filter $(B)/libcoord-redis.so,$^),-lcoord-redis) -lcoord

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
with_redis := $(call including,(connections|electors|brokers)/redis)
with_rooms := $(call including,(runtime|electors|brokers|connections)/)
with_support := $(if $(SUPPORT_SRC),$(call including,tests/support/($(subst $(space),|,$(patsubst tests/support/%.c,%,$(SUPPORT_SRC))))\.h))
with_sim := $(call including,tests/sim/)
with_cli := $(call including,cli/)
broad := $(filter-out tests/unit/%,$(TEST_SRC)) $(with_support) $(with_cli) $(with_sim)

# $(call libraries_of,SOURCE)
libraries_of = $(if $(filter $(1),$(with_cli)),$(B)/tests/libcli.a) \
  $(if $(filter $(1),$(with_sim)),$(if $(SIM_SRC),$(B)/tests/libsim.a)) \
  $(if $(filter $(1),$(broad)),$(if $(SUPPORT_SRC),$(B)/tests/libsupport.a) $(STATIC), \
  $(if $(filter $(1),$(with_redis)),$(STATIC), \
  $(if $(filter $(1),$(with_rooms)),$(B)/libcoord.a,$(B)/libcoord-core.a)))

link_test = $(Q)mkdir -p $(@D) && $(LINK) -o $@ $(filter %.o,$^) \
  -Wl,--start-group $(filter %.a,$^) -Wl,--end-group \
  $(if $(filter %libcoord-redis.a %libsupport.a,$^),$(HIREDIS_LIBS)) $(UUID_LIBS) $(MSGPACK_LIBS) \
  $(1) -ldl -lm

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
