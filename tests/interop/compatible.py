# SPDX-License-Identifier: MIT
"""coord/compatible.h: the coordinator that answers as eventsource-py does."""

import ctypes
import json
import time
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_double, c_int64, c_size_t
from ctypes import c_uint64, c_void_p, sizeof

import library
from library import check

FORMS = {"msgpack": 0, "json": 1}  # enum coord_form
MESSAGE_MAX = 64 * 1024
HEARTBEAT, SHUTDOWN, WORK_ASSIGNMENT = 0, 1, 2  # of enum coord_message_type
INTENTS = ["graceful", "preemption", "health_failure", "maintenance"]
BAD_MESSAGE = -13
PEERS_ROOM = 1000


class Value(Structure):
    _fields_ = [
        ("at", c_void_p),
        ("of", c_uint64),
        ("bytes", ctypes.c_uint32),
        ("count", ctypes.c_uint32),
        ("kind", ctypes.c_uint8),
        ("form", ctypes.c_uint8),
        ("escaped", ctypes.c_bool),
    ]


class Record(Structure):
    _fields_ = [("type", ctypes.c_int), ("fields", ctypes.c_uint), ("field", Value * 13)]


class SeedPeer(Structure):
    _fields_ = [("id", Value), ("heartbeat", POINTER(Record)), ("notice", POINTER(Record))]


class Drain(Structure):
    _fields_ = [
        ("intent", ctypes.c_int),
        ("subscriptions", Value),
        ("in_flight_count", c_int64),
        ("drain_s", c_double),
        ("metadata", Value),
    ]


class Event(Structure):
    _fields_ = [("kind", ctypes.c_int), ("message", POINTER(Record)), ("id", POINTER(Value))]


class CompatibleConfig(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("instance_id", c_char_p),
        ("instance_id_bytes", c_size_t),
        ("timeout_s", c_double),
        ("leadership", c_void_p),
        ("peers_max", c_size_t),
        ("bytes_max", c_size_t),
    ]


_Callback = CFUNCTYPE(None, c_void_p, POINTER(Event))
_value, _peers, _count = POINTER(Value), POINTER(SeedPeer), POINTER(c_size_t)
_buffer = (c_char_p, c_size_t, _count)  # what is written: where, its room, how much
call = library.call

_new = call("coord_compatible_new", POINTER(CompatibleConfig), POINTER(c_void_p))
_free = call("coord_compatible_free", c_void_p, result=None)
_on = call("coord_compatible_on", c_void_p, ctypes.c_int, _Callback, c_void_p)
_handle = {
    topic: call(f"coord_compatible_handle_{name}", c_void_p, c_char_p, c_size_t, c_int64)
    for topic, name in (
        (HEARTBEAT, "heartbeat"),
        (SHUTDOWN, "peer_shutdown"),
        (WORK_ASSIGNMENT, "work_assignment"),
    )
}
_timeouts = call("coord_compatible_check_timeouts", c_void_p, c_int64, _value, c_size_t, _count)
_remove = call("coord_compatible_remove_peer", c_void_p, _value, result=ctypes.c_bool)
_known = call("coord_compatible_known_peers", c_void_p, _peers, c_size_t, result=c_size_t)
_find = {
    what: call(f"coord_compatible_{what}", c_void_p, c_int64, _peers, c_size_t, _count)
    for what in ("healthy_peers", "draining_peers", "orphaned_subscriptions")
}
_status = call("coord_seed_status", _peers, c_int64, POINTER(ctypes.c_int))
_status_name = call("coord_seed_status_name", ctypes.c_int, result=c_char_p)
_subscriptions = call("coord_seed_subscriptions", _peers, result=Value)
_names_begin = call("coord_names_begin", _value, c_void_p, result=None)
_names_next = call("coord_names_next", c_void_p, _value, result=ctypes.c_bool)
_view = call("coord_view", c_char_p, c_size_t, _value)
_view_of_text = call("coord_text", c_char_p, c_size_t, result=Value)
_writer_begin = call(
    "coord_writer_begin", c_void_p, ctypes.c_int, c_char_p, c_size_t, result=None
)
_write_value = call("coord_write_value", c_void_p, _value, result=None)
_writer_finish = call("coord_writer_finish", c_void_p, _count)
_record_write = call("coord_record_write", POINTER(Record), ctypes.c_int, *_buffer)
_texts = call("coord_texts", POINTER(c_char_p), c_size_t, c_char_p, c_size_t, _value)
_create_heartbeat = call(
    "coord_compatible_create_heartbeat", c_void_p, _value, c_int64, c_double, c_int64,
    ctypes.c_int, *_buffer,
)  # fmt: skip
_create_shutdown = call(
    "coord_compatible_create_shutdown_notification", c_void_p, POINTER(Drain), c_int64,
    ctypes.c_int, *_buffer,
)  # fmt: skip
_create_assignment = call(
    "coord_compatible_create_work_assignment", c_void_p, c_char_p, _value, c_int64, c_int64,
    ctypes.c_int, *_buffer,
)  # fmt: skip
_hand_off = call("coord_compatible_initiate_leadership_handoff", c_void_p)
_topic = call("coord_topic", c_char_p, ctypes.c_int, c_char_p)

def wall():
    """Microseconds since 1970."""
    return time.time_ns() // 1000


def topic_of(kind):
    out = ctypes.create_string_buffer(256)
    check(_topic(None, kind, out))
    return out.value.decode()


TOPICS = {topic_of(kind): kind for kind in _handle}


def _written(function, *arguments):
    """What a function writes into a buffer that it is given last."""
    out, used = ctypes.create_string_buffer(MESSAGE_MAX), c_size_t()
    check(function(*arguments, out, MESSAGE_MAX, byref(used)))
    return out.raw[: used.value]


def _record(record):
    return json.loads(_written(_record_write, record, FORMS["json"]))


def _plain(value):
    """What a view shows, as Python has it."""
    out, used, writer = ctypes.create_string_buffer(MESSAGE_MAX), c_size_t(), _room_for_state()
    _writer_begin(writer, FORMS["json"], out, MESSAGE_MAX)
    _write_value(writer, byref(value))
    check(_writer_finish(writer, byref(used)))
    return json.loads(out.raw[: used.value])


def _room_for_state():
    """Room for a struct coord_writer or coord_names, of which nothing is read here."""
    return (c_uint64 * 64)()


def _names(value):
    names, found = _room_for_state(), Value()
    _names_begin(byref(value), names)
    while _names_next(names, byref(found)):
        yield _plain(found)


def _list(names):
    """A view of a list of texts, and the buffer in which it lies."""
    room = ctypes.create_string_buffer(MESSAGE_MAX)
    array = (c_char_p * len(names))(*(name.encode() for name in names))
    value = Value()
    check(_texts(array, len(names), room, MESSAGE_MAX, byref(value)))
    return value, room


class Coordinator:
    """One of coord's. Messages are bytes, as they are on a bus; the time is read when it is needed.

    `events` gets what its callbacks are told: a kind, and the message or the id.
    """

    KINDS = ["heartbeat", "peer_shutdown", "peer_timeout", "work_assignment"]

    def __init__(self, instance_id, timeout=15.0, leadership=None):
        self._handle = c_void_p()
        self._leadership = leadership  # kept for as long as it may be called
        config = CompatibleConfig(
            sizeof(CompatibleConfig), instance_id.encode(), len(instance_id.encode()), timeout,
            ctypes.cast(byref(leadership), c_void_p) if leadership else None, 100000, 2**28,
        )  # fmt: skip
        check(_new(byref(config), byref(self._handle)))
        self.events = []
        self._callback = _Callback(self._on_event)
        for kind, _ in enumerate(self.KINDS):
            check(_on(self._handle, kind, self._callback, None))

    def free(self):
        _free(self._handle)

    def _on_event(self, _ctx, event):
        message = event.contents.message
        told = _record(message) if message else _plain(event.contents.id.contents)
        self.events.append((self.KINDS[event.contents.kind], told))

    def handle(self, kind, message):
        """A message that came in. False: it is refused."""
        code = _handle[kind](self._handle, message, len(message), wall())
        if code == BAD_MESSAGE:
            return False
        check(code)
        return True

    def create_heartbeat(self, form, subscriptions, in_flight_count=0, load_factor=0.0):
        names, _room = _list(subscriptions)
        return _written(
            _create_heartbeat, self._handle, byref(names), in_flight_count, load_factor, wall(),
            FORMS[form],
        )  # fmt: skip

    def create_shutdown(
        self, form, intent, subscriptions, in_flight_count=0, drain_s=30.0, metadata=None
    ):
        names, _room = _list(subscriptions)
        drain = Drain(INTENTS.index(intent), names, in_flight_count, drain_s)
        if metadata is not None:
            text = json.dumps(metadata).encode()
            assert _view(text, len(text), byref(drain.metadata)) == 0
        return _written(_create_shutdown, self._handle, byref(drain), wall(), FORMS[form])

    def create_assignment(self, form, target, subscriptions, priority=0):
        names, _room = _list(subscriptions)
        return _written(
            _create_assignment, self._handle, target.encode(), byref(names), priority, wall(),
            FORMS[form],
        )  # fmt: skip

    def hand_off(self):
        """False: it does not lead at this instant."""
        code = _hand_off(self._handle)
        if code == library.NOT_LEADER:
            return False
        check(code)
        return True

    def check_timeouts(self):
        ids, count = (Value * PEERS_ROOM)(), c_size_t()
        check(_timeouts(self._handle, wall(), ids, PEERS_ROOM, byref(count)))
        return [_plain(id) for id in ids[: count.value]]

    def remove_peer(self, id):
        text = id.encode()
        return _remove(self._handle, byref(_view_of_text(text, len(text))))

    def records(self):
        """The last heartbeat and the last notice of each, as maps or None."""
        return {
            _plain(peer.id): tuple(
                _record(message) if message else None for message in (peer.heartbeat, peer.notice)
            )
            for peer in self._peers()
        }

    def _peers(self):
        peers = (SeedPeer * PEERS_ROOM)()
        return peers[: _known(self._handle, peers, PEERS_ROOM)]

    def _found(self, what):
        peers, count = (SeedPeer * PEERS_ROOM)(), c_size_t()
        check(_find[what](self._handle, wall(), peers, PEERS_ROOM, byref(count)))
        return peers[: count.value]

    def view(self):
        """All that it answers, of this moment."""
        status = ctypes.c_int()
        statuses = {}
        for peer in self._peers():
            check(_status(byref(peer), wall(), byref(status)))
            statuses[_plain(peer.id)] = _status_name(status).decode()
        return {
            "status": statuses,
            "healthy": len(self._found("healthy_peers")),
            "draining": [_plain(peer.id) for peer in self._found("draining_peers")],
            "orphans": {
                _plain(peer.id): list(_names(_subscriptions(byref(peer))))
                for peer in self._found("orphaned_subscriptions")
            },
        }
