/* SPDX-License-Identifier: MIT
 * electors/redis_scripts.c - the text of the scripts. Each needs no more than Redis 6.2 knows.
 *
 * Numbers are never joined to text by `..` without a format: Lua would print 1.8e+15. All of them
 * stay below 2^53, where a Lua number is exact.
 */
#include "electors/redis_scripts.h"

/* The server's clock, read before anything else; `now` is in us. */
#define CLOCK                   \
    "local call = redis.call\n" \
    "local t = call('TIME')\n"  \
    "local now = t[1] * 1000000 + t[2]\n"

/* A record outlives the last use of its name by 30 days. No lease is longer than a day. */
#define KEEP "2592000000"
#define DAY  "86400000"
#define MOST "9007199254740991"

/* A decimal number, or nil for anything else: tonumber() alone takes 0x10, 1e30 and nan. */
#define NUMBER                                                                \
    "local function number(text, most)\n"                                     \
    "  if not text or #text > 16 or not text:find('^%d+$') then return end\n" \
    "  local n = tonumber(text)\n"                                            \
    "  if n <= (most or " MOST ") then return n end\n"                        \
    "end\n"

/*
 * Which run of the server this is, and for how many ms it has lasted at least (-1: unknown).
 * A replica that was promoted keeps its process and its uptime; it shows by a second replication
 * id, and then the uptime says nothing about the run. Uptime counts whole seconds: less one.
 */
#define RUN                                                                                   \
    "local function this_run()\n"                                                             \
    "  local server = redis.pcall('INFO', 'server')\n"                                        \
    "  local replication = redis.pcall('INFO', 'replication')\n"                              \
    "  if type(server) ~= 'string' or type(replication) ~= 'string' then return '', -1 end\n" \
    "  local id = server:match('run_id:(%x+)')\n"                                             \
    "  local history = replication:match('master_replid:(%x+)')\n"                            \
    "  if not id or not history then return '', -1 end\n"                                     \
    "  local up = replication:find('master_replid2:0+%s')\n"                                  \
    "    and number(server:match('uptime_in_seconds:(%d+)'))\n"                               \
    "  return id .. ':' .. history, up and up * 1000 - 1000 or -1\n"                          \
    "end\n"

/* The lease's line: coordV FENCE ATTEMPT OWNER LEASE SINCE BYTES IDENTITY METADATA. */
#define LINE                                                                 \
    "local function line(text)\n"                                            \
    "  local v, rest = text:match('^coord(%d+) (.*)$')\n"                    \
    "  if v ~= '1' then return v and 21 or 20 end\n"                         \
    "  local f, a, o, l = rest:match('^(%d+) (%d+) (%x+) (%d+) %d+ %d+ ')\n" \
    "  if not f then return 20 end\n"                                        \
    "  return nil, f, tonumber(a), o, tonumber(l)\n"                         \
    "end\n"

/* What the record says that the holder of `fence` still owes; -1 when it speaks of another. */
#define OWES                                                   \
    "local function owes(r, fence)\n"                          \
    "  return r[2] == fence and number(r[5], " DAY ") or -1\n" \
    "end\n"

/*
 * What the record proves decides what a grant is worth:
 *   of this run, not behind what the candidate has seen: what it says is owed (0: clear);
 *   of another run: the longest of its lease, its debt and our lease, unless this run is older;
 *   none at all: one lease of ours, unless this run is older and the candidate saw no fence;
 *   behind what the candidate has seen, or unreadable: never clear.
 * The fence of a lost or foreign past leaps over what the lost one can have been.
 */
#define WORTH                                                            \
    "local function worth(r, ttl, seen, run, age, sound)\n"              \
    "  local stored, lease = number(r[2]), number(r[4], " DAY ")\n"      \
    "  local debt = number(r[5], " DAY ")\n"                             \
    "  local leap, owed = 4294967296, ttl\n"                             \
    "  if r[2] and not (stored and lease and debt and sound) then\n"     \
    "    owed = math.max(ttl, lease or 0, debt or 0)\n"                  \
    "  elseif not r[2] then\n"                                           \
    "    if sound and seen == 0 and age > ttl then owed = 0 end\n"       \
    "  elseif stored >= seen and run ~= '' and r[3] == run then\n"       \
    "    leap, owed = 0, debt\n"                                         \
    "  else\n"                                                           \
    "    owed = math.max(lease, debt, ttl)\n"                            \
    "    if stored >= seen and age > owed then owed = 0 end\n"           \
    "  end\n"                                                            \
    "  return math.max((stored or 0) + 1, seen + 1, now + leap), owed\n" \
    "end\n"

#define RECORD "'v', 'fence', 'run', 'lease', 'debt', 'owner', 'attempt', 'to', 'until', 'reserve'"

static const char acquire_body[] = CLOCK NUMBER RUN LINE OWES WORTH
    "local owner, attempt = ARGV[1], tonumber(ARGV[2])\n"
    "local ttl, seen = tonumber(ARGV[3]), tonumber(ARGV[4])\n"
    "local held = call('GET', KEYS[1])\n"
    "local r = call('HMGET', KEYS[2], " RECORD ", 'undone', 'undone_attempt')\n"
    "if r[1] and r[1] ~= '1' then return {21, now, 2} end\n"
    "local sound = true\n"
    "if held then\n"
    "  local bad, f, a, o, l = line(held)\n"
    "  if bad then return {bad, now, 1} end\n"
    "  local pttl = call('PTTL', KEYS[1])\n"
    "  if pttl == -1 and not (o == owner and a < attempt) then return {22, now} end\n"
    "  if o ~= owner then\n"
    /* It would outlive what its holder asked for: the server's clock has stepped back. */
    "    if pttl > l then\n"
    "      call('PEXPIRE', KEYS[1], l)\n"
    "      pttl = l\n"
    "    end\n"
    "    return {2, now, pttl, held, owes(r, f), number(r[2]) or 0}\n"
    "  end\n"
    "  if a > attempt then return {5, now} end\n"
    "  local debt = owes(r, f)\n"
    /* A lost reply. A server that came back with an older state may hold again what had lapsed,
     * while another has led since: that is not given again. */
    "  if a == attempt and debt >= 0 and tonumber(f) >= seen and r[3] == this_run() then\n"
    "    call('PEXPIRE', KEYS[1], ttl)\n"
    "    return {1, now, tonumber(f), debt}\n"
    "  end\n"
    /* An attempt of ours that is over. Its debt passes on; without it all may be owed. */
    "  sound = debt >= 0\n"
    "else\n"
    /* It ended, or was undone before it came: a late one must not make an unknown lease. */
    "  if r[6] == owner and (number(r[7]) or 0) >= attempt\n"
    "    or r[11] == owner and (number(r[12]) or 0) >= attempt then return {5, now} end\n"
    "  if r[8] and r[8] ~= '' and r[8] ~= ARGV[5] then\n"
    "    local left = math.ceil(((number(r[9]) or 0) - now) / 1000)\n"
    "    local reserve = number(r[10], " DAY ") or 0\n"
    "    if left > reserve then\n"
    "      call('HSET', KEYS[2], 'until', ('%.0f'):format(now + reserve * 1000))\n"
    "      left = reserve\n"
    "    end\n"
    "    if left > 0 then return {4, now, left, r[8], number(r[2]) or 0} end\n"
    "  end\n"
    "end\n"
    "local run, age = this_run()\n"
    "if run ~= '' and run == ARGV[7] then age = math.max(age, tonumber(ARGV[8])) end\n"
    "local fence, owed = worth(r, ttl, seen, run, age, sound)\n"
    "if fence > " MOST " then return {23, now} end\n"
    "local text = ('%.0f'):format(fence)\n"
    /* Writes are tried without effect first, so that a missing right leaves nothing behind; SET
     * comes first, as a full server stops asking once a script has written. */
    "call('SET', KEYS[1], held or '', 'XX', 'KEEPTTL')\n"
    "local kept = call('PEXPIRE', KEYS[2], " KEEP ")\n"
    "call('HSET', KEYS[2], 'v', '1', 'fence', text, 'run', run, 'lease', ARGV[3],\n"
    "  'debt', ('%.0f'):format(owed), 'owner', owner, 'attempt', ARGV[2],\n"
    "  'state', 'granted', 'to', '')\n"
    "local start = ('coord1 %s %s %s %s %.0f %d '):format(text, ARGV[2], owner, ARGV[3], now,\n"
    "  #ARGV[5])\n"
    "call('SET', KEYS[1], start .. ARGV[5] .. ARGV[6], 'PX', ttl)\n"
    "if kept == 0 then call('PEXPIRE', KEYS[2], " KEEP ") end\n"
    "return {1, now, fence, owed}\n";

static const char renew_body[] = CLOCK NUMBER RUN
    "local held = call('GET', KEYS[1])\n"
    "if not held or held:sub(1, #ARGV[1]) ~= ARGV[1] then\n"
    "  return {7, now, call('PTTL', KEYS[1]), held or ''}\n"
    "end\n"
    "local ask = call('GET', KEYS[3])\n"
    "local r = ARGV[4] ~= '' and call('HMGET', KEYS[2], 'fence', 'debt', 'run', 'state')\n"
    "call('PEXPIRE', KEYS[1], ARGV[2])\n"
    "if r and r[1] == ARGV[3] then\n"
    "  if ARGV[4] ~= 'led' then\n"
    "    if (number(r[2], " DAY ") or 0) < tonumber(ARGV[4]) then\n"
    "      call('HSET', KEYS[2], 'debt', ARGV[4])\n"
    "    end\n"
    "  else\n"
    "    if r[4] ~= 'led' or r[2] ~= '0' then\n"
    "      call('HSET', KEYS[2], 'debt', '0', 'state', 'led')\n"
    "    end\n"
    /* The holder has known this run for longer than its lease: whatever was lost with the former
     * one has ended. */
    "    if ARGV[5] ~= '' and r[3] ~= ARGV[5] and this_run() == ARGV[5] then\n"
    "      call('HSET', KEYS[2], 'run', ARGV[5])\n"
    "    end\n"
    "  end\n"
    "  call('PEXPIRE', KEYS[2], " KEEP ")\n"
    "end\n"
    "if ask then\n"
    "  local f, to = ask:match('^(%d+) (.*)$')\n"
    "  if f == ARGV[3] then return {6, now, to} end\n"
    "end\n"
    "return {6, now}\n";

static const char release_body[] =
    CLOCK "local held = call('GET', KEYS[1])\n"
          "if not held or held:sub(1, #ARGV[1]) ~= ARGV[1] then return {8, now, 0} end\n"
          "local r = call('HMGET', KEYS[2], 'fence')\n"
          /* First what a full server allows; after it the rest is allowed as well. */
          "call('DEL', KEYS[1], KEYS[3])\n"
          "if r[1] == ARGV[2] then\n"
          "  call('HSET', KEYS[2], 'debt', '0', 'state', 'resigned', 'to', ARGV[3],\n"
          "    'until', ('%.0f'):format(now + ARGV[4] * 1000), 'reserve', ARGV[4])\n"
          "  call('PEXPIRE', KEYS[2], " KEEP ")\n"
          "end\n"
          "return {8, now, 1}\n";

static const char undo_body[] = CLOCK NUMBER LINE
    "local attempt = tonumber(ARGV[2])\n"
    "local held = call('GET', KEYS[1])\n"
    "local r = call('HMGET', KEYS[2], 'v', 'owner', 'attempt')\n"
    "if r[1] and r[1] ~= '1' then return {21, now, 2} end\n"
    "local gone = 0\n"
    "if held then\n"
    "  local bad, f, a, o = line(held)\n"
    "  if o == ARGV[1] and a <= attempt then gone = call('DEL', KEYS[1]) end\n"
    "end\n"
    "if r[2] ~= ARGV[1] or (number(r[3]) or 0) < attempt then\n"
    "  call('HSET', KEYS[2], 'v', '1', 'undone', ARGV[1], 'undone_attempt', ARGV[2])\n"
    "  call('PEXPIRE', KEYS[2], " KEEP ")\n"
    "end\n"
    "return {8, now, gone}\n";

static const char observe_body[] =
    CLOCK NUMBER LINE OWES "local held = call('GET', KEYS[1])\n"
                           "local r = call('HMGET', KEYS[2], " RECORD ")\n"
                           "if r[1] and r[1] ~= '1' then return {21, now, 2} end\n"
                           "local fence = number(r[2]) or 0\n"
                           "if held then\n"
                           "  local bad, f = line(held)\n"
                           "  if bad then return {bad, now, 1} end\n"
                           "  return {2, now, call('PTTL', KEYS[1]), held, owes(r, f), fence}\n"
                           "end\n"
                           "local left = math.ceil(((number(r[9]) or 0) - now) / 1000)\n"
                           "left = math.min(left, number(r[10], " DAY ") or 0)\n"
                           "return {3, now, math.max(left, 0), r[8] or '', fence}\n";

static const char ask_body[] =
    CLOCK LINE "local held = call('GET', KEYS[1])\n"
               "if held then\n"
               "  local bad, f = line(held)\n"
               "  if bad then return {bad, now, 1} end\n"
               "  if f == ARGV[1] then\n"
               "    call('SET', KEYS[2], f .. ' ' .. ARGV[2], 'PX', ARGV[3])\n"
               "    return {8, now, 0}\n"
               "  end\n"
               "end\n"
               "return {9, now, call('PTTL', KEYS[1]), held or ''}\n";

static const char init_body[] = CLOCK NUMBER RUN LINE OWES WORTH
    "local seen = tonumber(ARGV[1])\n"
    "local held = call('GET', KEYS[1])\n"
    "local r = call('HMGET', KEYS[2], " RECORD ")\n"
    "if r[1] and r[1] ~= '1' then return {21, now, 2} end\n"
    "if held then\n"
    "  local bad, f = line(held)\n"
    "  if bad then return {bad, now, 1} end\n"
    "  local pttl = call('PTTL', KEYS[1])\n"
    "  return {2, now, pttl, held, owes(r, f), number(r[2]) or 0}\n"
    "end\n"
    "local run, age = this_run()\n"
    "if run == '' then return {24, now} end\n"
    "local fence = worth(r, 0, seen, run, age, true)\n"
    "if fence > " MOST " then return {23, now} end\n"
    "call('PEXPIRE', KEYS[2], " KEEP ")\n"
    "call('HSET', KEYS[2], 'v', '1', 'fence', ('%.0f'):format(fence), 'run', run,\n"
    "  'lease', '0', 'debt', '0', 'owner', '', 'attempt', '0', 'state', 'clear', 'to', '')\n"
    "call('PEXPIRE', KEYS[2], " KEEP ")\n"
    "return {8, now, 0}\n";

static const struct coord__redis_script scripts[] = {
    [COORD_VERB_ACQUIRE] = {acquire_body,
                            "8d62c91de11780459c72db72165edd90ffaa5150",
                            2,
                            {"lease", "fence", NULL}},
    [COORD_VERB_RENEW] = {renew_body,
                          "50338dcce619c99b2c3f29f8693a7c2dbd116d02",
                          3,
                          {"lease", "fence", "ask"}},
    [COORD_VERB_RELEASE] = {release_body,
                            "8924a6a7a236f611f7923d140dfef9ac45a6f326",
                            3,
                            {"lease", "fence", "ask"}},
    [COORD_VERB_UNDO] = {undo_body,
                         "d105bffcfa34ef5383305fa07c8c4576df5b3fee",
                         2,
                         {"lease", "fence", NULL}},
    [COORD_VERB_OBSERVE] = {observe_body,
                            "541d787b19355add43ed446f1a844a239f6d2d35",
                            2,
                            {"lease", "fence", NULL}},
    [COORD_VERB_ASK] = {ask_body,
                        "be120be19f848952bd8ef6a0be57fb7d571f69a5",
                        2,
                        {"lease", "ask", NULL}},
    [COORD_VERB_INIT] = {init_body,
                         "4e2fb88bae7b5a161dc7ce3f70f9bb0652c36fe0",
                         2,
                         {"lease", "fence", NULL}},
};

const struct coord__redis_script *coord__redis_script(enum coord_verb verb)
{
    COORD_ASSERT(verb > COORD_VERB_NONE);
    COORD_ASSERT(verb <= COORD_VERB_INIT);
    return &scripts[verb];
}
