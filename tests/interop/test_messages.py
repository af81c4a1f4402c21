# SPDX-License-Identifier: MIT
"""Messages over the channels of a Redis, as JSON and as msgpack, between both libraries."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from eventsource.application.subscriptions import coordination as seed

import compatible
import library
from peers import TOPICS, CoordPeer, PythonPeer, pack, unpack, until

FORMS = ("json", "msgpack")


@pytest.fixture(params=FORMS)
def form(request):
    return request.param


@pytest.fixture
async def pair(redis_server, form):
    """One of each."""
    async with (
        CoordPeer("in-c", redis_server, form) as ours,
        PythonPeer("in-python", redis_server, form) as theirs,
    ):
        yield ours, theirs


@pytest.fixture(params=("from coord", "from python"))
def sender_and_hearer(request, pair):
    return pair if request.param == "from coord" else pair[::-1]


async def all_heard(count, *peers):
    await until(lambda: all(peer.heard == count for peer in peers))


async def test_a_heartbeat_says_the_same_on_the_other_side(sender_and_hearer):
    sender, hearer = sender_and_hearer
    before = datetime.now(UTC)
    await sender.beat(["ledger-view", "mail – out"], in_flight_count=3, load_factor=0.625)
    await all_heard(1, sender, hearer)
    [(kind, told)] = hearer.events
    assert kind == "heartbeat"
    assert before <= datetime.fromisoformat(told.pop("timestamp")) <= datetime.now(UTC)
    assert told == {
        "instance_id": sender.id, "subscriptions": ["ledger-view", "mail – out"],
        "in_flight_count": 3, "is_leader": False, "load_factor": 0.625,
    }  # fmt: skip
    assert hearer.view() == {
        "status": {sender.id: "healthy"}, "healthy": 1, "draining": [], "orphans": {},
    }  # fmt: skip
    # Its own echo is nobody's.
    assert sender.events == [] and sender.view()["status"] == {}


async def test_a_notice_makes_its_sender_drain_and_then_terminated(sender_and_hearer):
    sender, hearer = sender_and_hearer
    metadata = {"provider": "spot", "notice_s": 30, "probe": {"code": 503, "tags": ["x", None]}}
    await sender.beat(["ledger-view"])
    await sender.leave(
        "preemption", ["ledger-view", "mail-outbox"], in_flight_count=2, drain_s=90.5,
        metadata=metadata,
    )  # fmt: skip
    await all_heard(2, sender, hearer)
    kind, told = hearer.events[-1]
    assert kind == "peer_shutdown"
    begun = datetime.fromisoformat(told.pop("initiated_at"))
    ends = datetime.fromisoformat(told.pop("expected_completion_at"))
    assert ends - begun == timedelta(seconds=90.5)
    assert told == {
        "instance_id": sender.id, "intent": "preemption",
        "subscriptions": ["ledger-view", "mail-outbox"], "in_flight_count": 2,
        "metadata": metadata,
    }  # fmt: skip
    orphans = {sender.id: ["ledger-view", "mail-outbox"]}
    assert hearer.view() == {
        "status": {sender.id: "draining"}, "healthy": 0, "draining": [sender.id],
        "orphans": orphans,
    }  # fmt: skip
    # A beat takes nothing back; a second notice replaces the first, and this one has ended.
    await sender.beat(["ledger-view"])
    await sender.leave("graceful", ["ledger-view", "mail-outbox"], drain_s=0.0)
    await all_heard(4, sender, hearer)
    assert hearer.view() == {
        "status": {sender.id: "terminated"}, "healthy": 0, "draining": [], "orphans": orphans,
    }  # fmt: skip
    assert await hearer.check_timeouts() == []
    assert hearer.remove(sender.id) and not hearer.remove(sender.id)
    assert hearer.view()["status"] == {}


async def test_an_assignment_reaches_whom_it_names_and_nobody_else(sender_and_hearer):
    sender, hearer = sender_and_hearer
    await sender.assign(hearer.id, ["audit", "ledger-view"], priority=-7)
    await sender.assign("somebody else", ["audit"])
    await sender.assign(sender.id, ["own"], priority=2)
    await all_heard(3, sender, hearer)
    [(kind, told)] = hearer.events
    del told["assigned_at"]
    assert kind == "work_assignment"
    assert told == {
        "target_instance_id": hearer.id, "subscriptions": ["audit", "ledger-view"],
        "source_instance_id": sender.id, "priority": -7,
    }  # fmt: skip
    [(kind, told)] = sender.events
    assert (told["target_instance_id"], told["priority"]) == (sender.id, 2)
    assert hearer.view()["status"] == {}  # a message of work makes nobody known


def beat_of(id, age, subscriptions):
    """A heartbeat of somebody who was heard some seconds ago."""
    made = datetime.now(UTC) - timedelta(seconds=age)
    return seed.HeartbeatMessage(id, made, tuple(subscriptions)).to_dict()


async def test_who_falls_silent_is_stale_and_times_out_on_both_sides(pair, form):
    ours, theirs = pair
    for message in (
        beat_of("long silent", 60, ["a", "b"]),
        beat_of("just silent", 15.5, ["c"]),
        beat_of("idle and silent", 3600, []),
        beat_of("alive", 0, ["d"]),
        beat_of("of tomorrow", -86400, ["e"]),
    ):
        await ours.publish(seed.HEARTBEAT_TOPIC, pack(form, message))
    await all_heard(5, ours, theirs)
    assert ours.records() == theirs.records()
    silent = ["long silent", "just silent", "idle and silent"]
    for peer in pair:
        assert await peer.check_timeouts() == silent
        assert [told for kind, told in peer.events if kind == "peer_timeout"] == silent
        assert peer.view() == {
            "status": dict.fromkeys(silent, "stale")
            | {"alive": "healthy", "of tomorrow": "healthy"},
            "healthy": 2,
            "draining": [],
            "orphans": {"long silent": ["a", "b"], "just silent": ["c"]},
        }


async def test_a_shorter_timeout_is_told_while_the_status_says_healthy(redis_server, form):
    async with (
        CoordPeer("in-c", redis_server, form, timeout=2.0) as ours,
        PythonPeer("in-python", redis_server, form, timeout=2.0) as theirs,
    ):
        await ours.publish(seed.HEARTBEAT_TOPIC, pack(form, beat_of("w", 2.5, ["a"])))
        await all_heard(1, ours, theirs)
        for peer in (ours, theirs):
            assert await peer.check_timeouts() == ["w"]
            assert peer.view()["status"] == {"w": "healthy"}
            assert peer.view()["orphans"] == {}


def test_the_topics_are_the_same():
    assert compatible.TOPICS == {topic: kind for topic, (kind, _) in TOPICS.items()}


def messages_of(peer):
    yield "heartbeat", peer.create_heartbeat(["ledger", "ü"], 3, 0.1)
    yield "shutdown", peer.create_shutdown_notification(
        seed.ShutdownIntent.MAINTENANCE, ["ledger"], 1, 30.0, {"a": [1, None, "x", {"b": 0.5}]}
    )
    yield "work_assignment", seed.WorkAssignment(
        "w", ("ledger",), "in-python", datetime.now(UTC).replace(microsecond=0), -3
    )


def test_coordctl_turns_each_form_into_the_other(form):
    """What comes of it is the same message for the library, of which every key was kept."""
    for name, message in messages_of(seed.WorkRedistributionCoordinator("in-python")):
        packed = pack(form, message.to_dict())
        as_json = library.coordctl("message", "decode", "--type", name, given=packed)
        as_msgpack = library.coordctl("message", "encode", "--type", name, given=packed)
        assert as_msgpack[:1] != b"{"
        for came in (json.loads(as_json), unpack(as_msgpack)):
            assert list(came)[: len(message.to_dict())] == list(message.to_dict())
            assert type(message).from_dict(came) == message
