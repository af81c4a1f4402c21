# SPDX-License-Identifier: MIT
"""Two kinds of peers on the channels of one Redis: coord's, and one of eventsource-py.

Both are asked by the same names, and answer in the same form.
"""

import asyncio
import contextlib
import ctypes
import json
from ctypes import POINTER, Structure, byref, c_char_p, c_size_t, c_uint64, c_void_p

import msgpack
import redis.asyncio
from eventsource.application.subscriptions import coordination as seed

import compatible
import library
from library import Error, check

GUARD = 120  # seconds until a condition that does not come about is a failure


class BusMessage(Structure):
    _fields_ = [("topic", c_char_p), ("bytes", c_void_p), ("count", c_size_t)]


_schemes = library.schemes(coord_redis_broker=["redis+unix"])
_open = library.call(
    "coord_bus_open", c_void_p, c_void_p, c_char_p, c_void_p, POINTER(c_void_p), POINTER(Error)
)
_close = library.call("coord_bus_close", c_void_p, result=None)
_subscribe = library.call("coord_bus_subscribe", c_void_p, c_char_p, POINTER(Error))
_publish = library.call(
    "coord_bus_publish", c_void_p, c_char_p, c_char_p, c_size_t, POINTER(Error)
)
_await_up = library.call("coord_bus_await_up", c_void_p, c_uint64, POINTER(Error))
_next = library.call("coord_bus_next", c_void_p, c_uint64, POINTER(BusMessage))

TOPICS = {
    seed.HEARTBEAT_TOPIC: (compatible.HEARTBEAT, seed.HeartbeatMessage),
    seed.SHUTDOWN_NOTIFICATIONS_TOPIC: (compatible.SHUTDOWN, seed.ShutdownNotification),
    seed.WORK_ASSIGNMENT_TOPIC: (compatible.WORK_ASSIGNMENT, seed.WorkAssignment),
}


def pack(form, message):
    """A map as bytes, as an application in Python would do it."""
    return msgpack.packb(message) if form == "msgpack" else json.dumps(message).encode()


def unpack(message):
    return json.loads(message) if message[:1] == b"{" else msgpack.unpackb(message)


async def until(condition):
    """Wait for a condition, which is a function; the time is a guard, and no measure."""
    async with asyncio.timeout(GUARD):
        while not condition():
            await asyncio.sleep(0.001)


class _Peer:
    """What both have in common: `heard` counts messages, `refused` has what was not taken."""

    def __init__(self, form):
        self.form = form
        self.heard = 0
        self.refused = []

    async def __aenter__(self):
        await self._join()
        self._task = asyncio.create_task(self._listen())
        return self

    async def __aexit__(self, *_):
        await self._end_listening()
        await self._leave()

    async def _take(self, topic, message):
        if not await self._handle(topic, message):
            self.refused.append(message)
        self.heard += 1


class CoordPeer(_Peer):
    def __init__(self, id, server, form, timeout=15.0, elector=None):
        super().__init__(form)
        self.id = id
        self._server = server
        self._ending = False
        self.coordinator = compatible.Coordinator(
            id, timeout, elector and elector.leadership()
        )

    async def _join(self):
        self._runtime = library.Runtime()
        self._bus, error = c_void_p(), Error()
        uri = self._server.uri.encode()
        check(
            _open(self._runtime.handle, _schemes, uri, None, byref(self._bus), byref(error)), error
        )
        for topic in TOPICS:
            check(_subscribe(self._bus, topic.encode(), byref(error)), error)
        check(
            await asyncio.to_thread(_await_up, self._bus, GUARD * 1000, byref(error)), error
        )

    async def _end_listening(self):
        self._ending = True
        await self._task

    async def _leave(self):
        _close(self._bus)
        await asyncio.to_thread(self._runtime.free)
        self.coordinator.free()

    async def _listen(self):
        came = BusMessage()
        while not self._ending:
            # Short, as a thread that waits cannot be told to stop.
            code = await asyncio.to_thread(_next, self._bus, 50, byref(came))
            if code != library.TIMEOUT:
                check(code)
                message = ctypes.string_at(came.bytes, came.count)
                await self._take(came.topic.decode(), message)

    async def _handle(self, topic, message):
        return self.coordinator.handle(TOPICS[topic][0], message)

    async def publish(self, topic, message):
        error = Error()
        check(_publish(self._bus, topic.encode(), message, len(message), byref(error)), error)

    async def beat(self, subscriptions, in_flight_count=0, load_factor=0.0):
        message = self.coordinator.create_heartbeat(
            self.form, subscriptions, in_flight_count, load_factor
        )
        await self.publish(seed.HEARTBEAT_TOPIC, message)

    async def leave(self, intent, subscriptions, **details):
        message = self.coordinator.create_shutdown(self.form, intent, subscriptions, **details)
        await self.publish(seed.SHUTDOWN_NOTIFICATIONS_TOPIC, message)

    async def assign(self, target, subscriptions, priority=0):
        message = self.coordinator.create_assignment(self.form, target, subscriptions, priority)
        await self.publish(seed.WORK_ASSIGNMENT_TOPIC, message)

    async def hand_off(self):
        return self.coordinator.hand_off()

    async def check_timeouts(self):
        return self.coordinator.check_timeouts()

    def remove(self, id):
        return self.coordinator.remove_peer(id)

    def records(self):
        return self.coordinator.records()

    def view(self):
        return self.coordinator.view()

    @property
    def events(self):
        return self.coordinator.events


class PythonPeer(_Peer):
    def __init__(self, id, server, form, timeout=15.0, elector=None):
        super().__init__(form)
        self.id = id
        self._redis = redis.asyncio.Redis(unix_socket_path=server.socket)
        self.coordinator = seed.WorkRedistributionCoordinator(
            id, leader_elector=elector, heartbeat_timeout_seconds=timeout
        )
        self.events = []
        self.coordinator.on_heartbeat(self._teller("heartbeat"))
        self.coordinator.on_peer_shutdown(self._teller("peer_shutdown"))
        self.coordinator.on_peer_timeout(self._teller("peer_timeout"))
        self.coordinator.on_work_assignment(self._teller("work_assignment"))
        self._handlers = {
            seed.HEARTBEAT_TOPIC: self.coordinator.handle_heartbeat,
            seed.SHUTDOWN_NOTIFICATIONS_TOPIC: self.coordinator.handle_peer_shutdown,
            seed.WORK_ASSIGNMENT_TOPIC: self.coordinator.handle_work_assignment,
        }

    def _teller(self, kind):
        async def tell(what):
            self.events.append((kind, what if kind == "peer_timeout" else what.to_dict()))

        return tell

    async def _join(self):
        self._heard = self._redis.pubsub(ignore_subscribe_messages=True)
        await self._heard.subscribe(*TOPICS)

    async def _end_listening(self):
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _leave(self):
        await self._heard.aclose()
        await self._redis.aclose()

    async def _listen(self):
        async for message in self._heard.listen():
            if message is not None and message["type"] == "message":
                await self._take(message["channel"].decode(), message["data"])

    async def _handle(self, topic, message):
        try:
            await self._handlers[topic](TOPICS[topic][1].from_dict(unpack(message)))
            return True
        except (KeyError, TypeError, ValueError):
            return False

    async def publish(self, topic, message):
        await self._redis.publish(topic, message)

    async def beat(self, subscriptions, in_flight_count=0, load_factor=0.0):
        message = self.coordinator.create_heartbeat(subscriptions, in_flight_count, load_factor)
        await self.publish(seed.HEARTBEAT_TOPIC, pack(self.form, message.to_dict()))

    async def leave(self, intent, subscriptions, in_flight_count=0, drain_s=30.0, metadata=None):
        message = self.coordinator.create_shutdown_notification(
            seed.ShutdownIntent(intent), subscriptions, in_flight_count, drain_s, metadata
        )
        await self.publish(seed.SHUTDOWN_NOTIFICATIONS_TOPIC, pack(self.form, message.to_dict()))

    async def assign(self, target, subscriptions, priority=0):
        message = await self.coordinator.create_work_assignment(target, subscriptions, priority)
        await self.publish(seed.WORK_ASSIGNMENT_TOPIC, pack(self.form, message.to_dict()))

    async def hand_off(self):
        return await self.coordinator.initiate_leadership_handoff()

    async def check_timeouts(self):
        return await self.coordinator.check_peer_timeouts()

    def remove(self, id):
        return self.coordinator.remove_peer(id)

    def records(self):
        return {
            id: tuple(
                message and message.to_dict()
                for message in (peer.last_heartbeat, peer.shutdown_notification)
            )
            for id, peer in self.coordinator.known_peers.items()
        }

    def view(self):
        orphans = self.coordinator.get_orphaned_subscriptions()
        return {
            "status": {id: p.status for id, p in self.coordinator.known_peers.items()},
            "healthy": self.coordinator.healthy_peer_count,
            "draining": [peer.instance_id for peer in self.coordinator.draining_peers],
            "orphans": {id: list(names) for id, names in orphans.items()},
        }
