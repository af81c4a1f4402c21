# SPDX-License-Identifier: MIT
"""A LeaderElector of eventsource-py that is a coord_election."""

import asyncio
import logging
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_bool, c_char_p, c_int, c_uint64
from ctypes import c_void_p, sizeof

import library
from library import ElectionConfig, Error, LeaderChange, Observation, check

logger = logging.getLogger(__name__)

_schemes = library.schemes(
    coord_memory_elector=["memory"],
    coord_file_elector=["file"],
    coord_redis_elector=["redis", "redis+unix"],
    coord_postgres_elector=["postgresql"],
)

_open = library.call(
    "coord_election_open", c_void_p, c_void_p, c_char_p, POINTER(ElectionConfig),
    POINTER(c_void_p), POINTER(Error),
)  # fmt: skip
_close = library.call("coord_election_close", c_void_p, result=None)
_stop = library.call("coord_election_stop", c_void_p, c_uint64, c_void_p)
_is_leader = library.call("coord_election_is_leader", c_void_p, result=c_bool)
_leader = library.call("coord_election_leader", c_void_p, POINTER(Observation))
_identity = library.call("coord_election_identity", c_void_p, result=c_char_p)
_try_acquire = library.call("coord_election_try_acquire", c_void_p, c_uint64, POINTER(Error))
_release = library.call("coord_election_release", c_void_p, c_uint64, POINTER(Error))
_renew = library.call("coord_election_renew", c_void_p, c_uint64, POINTER(Error))
_on_change = library.call("coord_election_on_leader_change", c_void_p, LeaderChange, c_void_p)


class Leadership(Structure):
    """coord/leadership.h: an elector as coord's coordinators ask it."""

    IsLeader = CFUNCTYPE(c_bool, c_void_p, POINTER(c_uint64))
    Ask = CFUNCTYPE(c_int, c_void_p)
    _fields_ = [("is_leader", IsLeader), ("renew", Ask), ("release", Ask), ("ctx", c_void_p)]


def _ms(seconds):
    return int(seconds * 1000)


class Elector:
    """One candidate. Its term is renewed by coord's own threads; renew() does so out of turn."""

    def __init__(self, uri, name, identity, call_bound=10.0):
        self._call_bound = _ms(call_bound)
        self._loop = asyncio.get_running_loop()
        self._callbacks = []
        self._edges = asyncio.Queue()
        self._told = False  # the last edge that all callbacks have heard
        self._changed = asyncio.Condition()
        self._runtime = library.Runtime()
        self._election = c_void_p()
        config = ElectionConfig(
            sizeof(ElectionConfig), name.encode(), len(name.encode()), identity.encode(),
            len(identity.encode()),
        )  # fmt: skip
        error = Error()
        check(
            _open(self._runtime.handle, _schemes, uri.encode(), byref(config),
                  byref(self._election), byref(error)),
            error,
        )  # fmt: skip
        self._edge = LeaderChange(self._on_edge)  # kept for as long as it may be called
        check(_on_change(self._election, self._edge, None))
        self._teller = asyncio.create_task(self._tell())

    async def aclose(self):
        await asyncio.to_thread(_stop, self._election, self._call_bound, None)
        self._teller.cancel()
        _close(self._election)
        await asyncio.to_thread(self._runtime.free)

    # ---- edges: from coord's thread into the loop, and there to all, one after another

    def _on_edge(self, _ctx, _election, leading):
        self._loop.call_soon_threadsafe(self._edges.put_nowait, leading)

    async def _tell(self):
        while True:
            leading = await self._edges.get()
            for callback in list(self._callbacks):
                try:
                    await callback(leading)
                except Exception:
                    logger.exception("a callback failed")
            async with self._changed:
                self._told = leading
                self._changed.notify_all()

    async def _until(self, condition):
        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(condition), self._call_bound / 1000)

    # ---- the port

    @property
    def identity(self):
        return _identity(self._election).decode()

    @property
    def is_leader(self):
        return _is_leader(self._election)

    @property
    def current_leader(self):
        seen = Observation()
        check(_leader(self._election, byref(seen)))
        return seen.identity.decode() if seen.leading else None

    async def try_acquire(self, timeout=10.0):
        error = Error()
        code = await asyncio.to_thread(_try_acquire, self._election, _ms(timeout), byref(error))
        if code in (library.NOT_LEADER, library.TIMEOUT):
            return False
        check(code, error)
        await self._until(lambda: self._told or not self.is_leader)
        return self.is_leader

    async def release(self):
        error = Error()
        code = await asyncio.to_thread(_release, self._election, self._call_bound, byref(error))
        await self._until(lambda: not self._told)
        check(code, error)

    async def renew(self):
        error = Error()
        code = await asyncio.to_thread(_renew, self._election, self._call_bound, byref(error))
        return code == library.OK

    def on_leader_change(self, callback):
        self._callbacks.append(callback)

    def remove_leader_change_callback(self, callback):
        if callback not in self._callbacks:
            return False
        self._callbacks.remove(callback)
        return True

    # ---- for coordinators of coord's own

    def leadership(self):
        """Its calls wait for the store, in whatever thread they are made."""

        def is_leader(_ctx, _fence):  # the messages of eventsource-py carry no fence
            return self.is_leader

        return Leadership(
            Leadership.IsLeader(is_leader),
            Leadership.Ask(lambda _ctx: _renew(self._election, self._call_bound, None)),
            Leadership.Ask(lambda _ctx: _release(self._election, self._call_bound, None)),
        )
