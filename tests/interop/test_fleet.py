# SPDX-License-Identifier: MIT
"""One fleet: members that are `coordctl agent`, and coordinators of eventsource-py."""

import asyncio
import contextlib
import json
import subprocess

import library
from peers import GUARD, PythonPeer, until

BEAT_S = 1.0  # of those in Python; an agent's is a quarter of the time-out, 15 s on both sides


class Fleet:
    """Processes of coordctl over one Redis, which is the bus and holds the election."""

    def __init__(self, server):
        self.bus = ["--bus", server.uri]
        self.election = ["--elector", server.uri, "--name", "fleet"]
        self._running = []
        self._tasks = []

    async def __aenter__(self):
        await self.run("init", *self.election)
        return self

    async def __aexit__(self, *_):
        for task in self._tasks:
            task.cancel()
        for process in self._running:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    def meanwhile(self, coroutine):
        """Goes on until it is cancelled, or the fleet ends."""
        self._tasks.append(asyncio.create_task(coroutine))
        return self._tasks[-1]

    async def start(self, *arguments):
        process = await asyncio.create_subprocess_exec(
            library.program, *arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        self._running.append(process)
        return process

    async def agent(self, id, work, form):
        return await self.start(
            "agent", *self.election, *self.bus, "--id", id, "--subscriptions", work,
            "--format", form,
        )  # fmt: skip

    async def run(self, *arguments):
        """Run to its end; what it prints, a map for each line of JSON."""
        process = await self.start(*arguments)
        async with asyncio.timeout(GUARD):
            out, _ = await process.communicate()
        assert process.returncode == 0, arguments
        return [json.loads(line) for line in out.splitlines() if line.startswith(b"{")]


class Reports:
    """`coordctl orphans --follow`: the last that was told of each piece of work of each owner."""

    def __init__(self):
        self.last = {}

    async def follow(self, fleet):
        process = await fleet.start("orphans", *fleet.bus, "--follow", "--json")
        async for line in process.stdout:
            report = json.loads(line)
            self.last[report["peer"]["instance_id"], report["subscription"]] = report

    def open(self):
        return {work: r["cause"] for work, r in self.last.items() if r["kind"] != "resolved"}


async def beat(peer, *subscriptions):
    while True:
        await peer.beat(list(subscriptions), in_flight_count=1, load_factor=0.25)
        await asyncio.sleep(BEAT_S)


def leads(hearer, id):
    heartbeat, _ = hearer.records().get(id, (None, None))
    return heartbeat is not None and heartbeat["is_leader"]


async def test_members_of_both_libraries_agree_on_who_is_there_and_whose_work_is_orphaned(
    redis_server,
):
    async with (
        PythonPeer("py-listens", redis_server, "json") as hearer,
        PythonPeer("py-works", redis_server, "msgpack") as worker,
        PythonPeer("py-leaves", redis_server, "json") as leaver,
        PythonPeer("py-crashes", redis_server, "json") as crasher,
        Fleet(redis_server) as fleet,
    ):
        reports = Reports()
        fleet.meanwhile(reports.follow(fleet))
        await fleet.agent("c-leads", "orders", "json")
        await until(lambda: leads(hearer, "c-leads"))
        leaves = await fleet.agent("c-leaves", "ledger", "msgpack")
        crashes = await fleet.agent("c-crashes", "mail,audit", "msgpack")
        working = fleet.meanwhile(beat(worker, "billing"))
        crashing = fleet.meanwhile(beat(crasher, "search", "stock"))
        fleet.meanwhile(beat(leaver, "shipping"))

        # Who is there.
        await until(lambda: hearer.view()["healthy"] == 6)
        heard = {}
        while len(heard) < 6:
            lines = await fleet.run("peers", *fleet.bus, "--for", "5s", "--json")
            heard = {line["id"]: line for line in lines}
        assert {id: peer["status"] for id, peer in heard.items()} == hearer.view()["status"]
        for id, (heartbeat, _) in hearer.records().items():
            for key in ("subscriptions", "is_leader", "in_flight_count", "load_factor"):
                assert heard[id][key] == heartbeat[key], (id, key)

        # Two leave, two crash.
        await fleet.run(
            "announce", *fleet.bus, "--id", "c-leaves", "--intent", "maintenance", "--deadline",
            "600s", "--subscriptions", "ledger", "--format", "json",
        )  # fmt: skip
        await leaver.leave("preemption", ["shipping"], drain_s=600)
        crashes.kill()
        crashing.cancel()
        async with asyncio.timeout(GUARD):
            assert await leaves.wait() == 0
        await until(lambda: hearer.view()["draining"] == ["c-leaves", "py-leaves"])
        orphaned = {
            "c-leaves": ["ledger"], "c-crashes": ["mail", "audit"], "py-leaves": ["shipping"],
            "py-crashes": ["search", "stock"],
        }  # fmt: skip
        await until(lambda: hearer.view()["orphans"] == orphaned)
        causes = {
            ("c-leaves", "ledger"): "finished",
            ("c-crashes", "mail"): "silent",
            ("c-crashes", "audit"): "silent",
            ("py-leaves", "shipping"): "draining",
            ("py-crashes", "search"): "silent",
            ("py-crashes", "stock"): "silent",
        }
        await until(lambda: reports.open() == causes)
        assert sorted(await hearer.check_timeouts()) == ["c-crashes", "py-crashes"]

        # Work is given to one in Python, who takes it.
        await fleet.run(
            "assign", *fleet.bus, *fleet.election, "--to", "py-works", "--subscriptions",
            "mail,stock", "--priority", "5", "--format", "json",
        )  # fmt: skip
        await until(lambda: "work_assignment" in dict(worker.events))
        assigned = dict(worker.events)["work_assignment"]
        assert (assigned["subscriptions"], assigned["priority"]) == (["mail", "stock"], 5)
        working.cancel()
        fleet.meanwhile(beat(worker, "billing", *assigned["subscriptions"]))
        del causes["c-crashes", "mail"], causes["py-crashes", "stock"]
        await until(lambda: reports.open() == causes)
