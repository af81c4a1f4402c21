# SPDX-License-Identifier: MIT
"""Whatever comes over a bus, good or bad, both libraries make the same of it.

Random messages, half of them odd in some way, are published to a coordinator of each; after each
of them all that the two can be asked is compared. SEED=N tries another sequence.
"""

import collections
import json
import os
import random
from datetime import UTC, datetime, timedelta, timezone

import pytest
from eventsource.application.subscriptions import coordination as seed

from compatible import INTENTS
from peers import CoordPeer, PythonPeer, pack, until

MESSAGES = 400
HOUR = timedelta(hours=1)
ABSENT = object()
UNKNOWN = "cannot be told"
IDS = ["a", "b", "c", "w/3", "édge 🙂", "both", "", "\x00\"\\/\n", None, 7]
ODD = [
    None, True, 3, -1, 2**40, 0.5, 1e-7, -0.0, "3", "", [], [1, None], {}, {"k": {"deep": [0.1]}},
]  # fmt: skip
JUNK = [b"[]", b"null", b"\xc0", b"\x07", b"{", b"\xdf\xff\xff\xff\xff", b"\x81\xa1\xff\xc0"]


class Messages:
    """Times are an hour or more away from now, so that no answer changes while it is asked for."""

    def __init__(self, number, form):
        self.random = random.Random(number)
        self.form = form
        # Longer integers than msgpack has.
        self.odd = ODD if form == "msgpack" else [*ODD, 2**70, -(10**40)]

    def one_of(self, *values):
        return self.random.choice(values)

    def often(self, good, odd):
        return good if self.random.random() < 0.85 else odd

    def moment(self):
        hours = self.one_of(-300, -2, -1, 1, 2, 300)
        zone = self.one_of(UTC, UTC, timezone(timedelta(hours=5, minutes=30)), timezone(-HOUR * 8))
        moment = datetime.now(zone) + hours * HOUR
        return moment if self.random.random() < 0.8 else moment.replace(microsecond=0)

    def time(self):
        moment = self.moment()
        text = moment.isoformat()
        odd = [
            text.replace("+00:00", "Z"), text.replace("T", " "), text[:-3] + text[-2:],
            moment.strftime("%Y%m%dT%H%M%S%z"), moment.isoformat(timespec="milliseconds"),
            moment.replace(tzinfo=None).isoformat(), moment.date().isoformat(), text + " ",
            text.replace("+00:00", "z"), "", "2026-02-30T00:00:00+00:00", "tomorrow", None, 5,
        ]  # fmt: skip
        return self.often(text, self.one_of(*odd))

    def subscriptions(self):
        names = self.random.choices(["ledger", "audit", "ü", "mail"], k=self.random.randrange(4))
        return self.often(names, self.one_of(ABSENT, "abc", "ü\n", {"k": 1, "l": 2}, *self.odd))

    def odd_or(self, *values):
        return self.often(self.one_of(*values), self.one_of(ABSENT, *self.odd))

    def heartbeat(self):
        return {
            "instance_id": self.one_of(*IDS),
            "timestamp": self.time(),
            "subscriptions": self.subscriptions(),
            "in_flight_count": self.odd_or(0, 1, 12),
            "is_leader": self.odd_or(True, False),
            "load_factor": self.odd_or(0.0, 0.3, 1.0, 0.30000000000000004),
        }

    def shutdown(self):
        return {
            "instance_id": self.one_of(*IDS),
            "intent": self.often(self.one_of(*INTENTS), self.one_of("idle", *self.odd)),
            "initiated_at": self.time(),
            "expected_completion_at": self.time(),
            "subscriptions": self.subscriptions(),
            "in_flight_count": self.odd_or(0, 1, 12),
            "metadata": self.odd_or({}, {"provider": "spot", "notice_s": 30}),
        }

    def work_assignment(self):
        return {
            "target_instance_id": self.one_of("both", "both", *IDS),
            "subscriptions": self.subscriptions(),
            "source_instance_id": self.one_of(*IDS),
            "assigned_at": self.time(),
            "priority": self.odd_or(0, 100, -1),
        }

    def next(self):
        topic, make = self.one_of(
            (seed.HEARTBEAT_TOPIC, self.heartbeat),
            (seed.HEARTBEAT_TOPIC, self.heartbeat),
            (seed.SHUTDOWN_NOTIFICATIONS_TOPIC, self.shutdown),
            (seed.WORK_ASSIGNMENT_TOPIC, self.work_assignment),
        )
        message = {key: value for key, value in make().items() if value is not ABSENT}
        if self.random.random() < 0.05:
            del message[self.one_of(*message)]
        if self.random.random() < 0.1:
            message |= {"incarnation": "x", "fence": 7}
        keys = list(message)
        self.random.shuffle(keys)
        return topic, self.bytes_of({key: message[key] for key in keys})

    def bytes_of(self, message):
        """As a rule as it is; sometimes with a key that comes twice, sometimes broken."""
        whole = pack(self.form, message)
        chance = self.random.random()
        if self.form == "json" and chance < 0.05:
            return whole[:-1] + b', "instance_id": "twice", "priority": 9}'
        if chance > 0.05:
            return whole
        return self.one_of(whole[:-1], whole[1:], whole + b"\x01", whole + b"x", *JUNK)


def told(value):
    """As text, so that 1, 1.0 and true differ, and the order of keys counts."""
    return json.dumps(value)


def asked(peer):
    """All that it answers; where a time without offset is known, nothing can be."""
    try:
        return told(peer.view())
    except (TypeError, RuntimeError):
        return UNKNOWN


async def timeouts(peer):
    try:
        return await peer.check_timeouts()
    except (TypeError, RuntimeError):
        return UNKNOWN


@pytest.mark.parametrize("form", ("json", "msgpack"))
async def test_both_make_the_same_of_whatever_comes(redis_server, form):
    messages = Messages(int(os.environ.get("SEED", "1")), form)
    seen = collections.Counter()
    async with (
        CoordPeer("both", redis_server, form) as ours,
        PythonPeer("both", redis_server, form) as theirs,
    ):
        for number in range(1, MESSAGES + 1):
            topic, message = messages.next()
            await ours.publish(topic, message)
            await until(lambda: ours.heard == theirs.heard == number)
            note = f"{number}: {topic} {message}"
            seen["refused"] += bool(ours.refused)
            assert bool(ours.refused) == bool(theirs.refused), note
            ours.refused.clear(), theirs.refused.clear()
            seen["told"] += len(theirs.events)
            assert told(ours.events) == told(theirs.events), note
            ours.events.clear(), theirs.events.clear()
            assert told(ours.records()) == told(theirs.records()), note
            answer = asked(ours)
            seen["unanswered" if answer == UNKNOWN else "answered"] += 1
            assert answer == asked(theirs), note
            assert await timeouts(ours) == await timeouts(theirs), note
            for peer in list(theirs.coordinator.known_peers):
                if isinstance(peer, str) and messages.random.random() < 0.1:
                    assert ours.remove(peer) and theirs.remove(peer)
    # They did not only agree on refusals.
    assert all(seen[what] > 0 for what in ("refused", "told", "answered", "unanswered")), seen
