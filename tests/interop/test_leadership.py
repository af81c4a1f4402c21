# SPDX-License-Identifier: MIT
"""Coordinators of both libraries stand in one election of coord, and act only while they lead."""

import contextlib

import pytest
from eventsource.application.subscriptions.coordination import verify_leadership_lease
from eventsource.ports.exceptions import TransitionError

import library
from elector import Elector
from peers import CoordPeer, PythonPeer, until


@pytest.fixture
async def electors(redis_server):
    """Two candidates of one election; nobody leads yet."""
    library.coordctl("init", "--elector", redis_server.uri, "--name", "leadership")
    async with (
        contextlib.aclosing(Elector(redis_server.uri, "leadership", "in-c")) as ours,
        contextlib.aclosing(Elector(redis_server.uri, "leadership", "in-python")) as theirs,
    ):
        yield ours, theirs


@pytest.fixture
async def pair(redis_server, electors):
    ours, theirs = electors
    async with (
        CoordPeer("in-c", redis_server, "json", elector=ours) as in_c,
        PythonPeer("in-python", redis_server, "msgpack", elector=theirs) as in_python,
    ):
        yield in_c, in_python


@pytest.fixture(params=("from coord", "from python"))
def turns(request, pair, electors):
    """(peer, its elector) of the one that leads first, and of the other."""
    both = list(zip(pair, electors))
    return both if request.param == "from coord" else both[::-1]


async def test_leadership_and_the_right_to_assign_are_handed_over(turns):
    (first, its), (second, others) = turns
    for peer in (first, second):
        assert not await peer.hand_off()
        with pytest.raises((TransitionError, library.Failure)):
            await peer.assign("w", ["orders"])
    assert await its.try_acquire()
    assert not await others.try_acquire()
    await first.beat(["orders"])
    await first.assign(second.id, ["ledger"])
    await second.beat(["mail"])
    await until(lambda: first.heard == second.heard == 3)
    assert [told["is_leader"] for kind, told in second.events if kind == "heartbeat"] == [True]
    assert [told["is_leader"] for kind, told in first.events if kind == "heartbeat"] == [False]
    assert dict(second.events)["work_assignment"]["source_instance_id"] == first.id

    assert not await second.hand_off()
    assert await first.hand_off()
    await until(lambda: not its.is_leader)
    assert await others.try_acquire()
    assert others.current_leader == second.id
    await second.assign(first.id, ["ledger"])
    with pytest.raises((TransitionError, library.Failure)):
        await first.assign(second.id, ["orders"])
    await until(lambda: "work_assignment" in dict(first.events))


async def test_a_lost_term_is_told_and_nobody_acts_any_more(redis_server, pair, electors):
    election = ["--elector", redis_server.uri, "--name", "leadership"]
    for peer, elector in zip(pair, electors):
        seen = []

        async def note(leading, seen=seen):
            seen.append(leading)

        elector.on_leader_change(note)
        assert await elector.try_acquire()
        assert await verify_leadership_lease(elector)
        library.coordctl("step-down", *election)
        await until(lambda: seen == [True, False])
        assert not elector.is_leader
        assert not await verify_leadership_lease(elector)
        with pytest.raises((TransitionError, library.Failure)):
            await peer.assign("w", ["orders"])


async def test_a_store_that_cannot_be_asked_is_no_lost_election(tmp_path):
    nowhere = f"redis+unix://{tmp_path}/nobody"
    async with contextlib.aclosing(Elector(nowhere, "leadership", "in-c")) as elector:
        with pytest.raises(ConnectionError):
            await elector.try_acquire(timeout=5.0)
        assert not await elector.renew()
        await elector.release()
