# SPDX-License-Identifier: MIT
"""libcoord through ctypes: the structures and the calls that these tests need, and no more."""

import ctypes
import os
import subprocess
from ctypes import CFUNCTYPE, POINTER, Structure, byref

OK, NOT_LEADER, TIMEOUT = 0, -24, -26  # of enum coord_err
REFUSED, RETRY = 2, 3  # of enum coord_error_class

build = os.environ["B"]
_libraries = [
    ctypes.CDLL(os.path.join(build, name))
    for name in ("libcoord.so", "libcoord-redis.so", "libcoord-postgres.so")
]
program = os.path.join(build, "coordctl")

_size, _pointer, _ms = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_uint64


class Error(Structure):
    _fields_ = [("code", ctypes.c_int), ("text", ctypes.c_char * 320)]


class Failure(RuntimeError):
    """An error of coord that is none of the store's."""


class Log(Structure):
    _fields_ = [("fn", _pointer), ("ctx", _pointer), ("level", ctypes.c_int)]


class Scheme(Structure):
    """A line of the table of electors, or of buses: they look the same."""

    _fields_ = [("scheme", ctypes.c_char_p), ("ops", _pointer), ("load", _pointer)]


class ElectionConfig(Structure):
    _fields_ = [
        ("size", _size),
        ("name", ctypes.c_char_p),
        ("name_bytes", _size),
        ("identity", ctypes.c_char_p),
        ("identity_bytes", _size),
        ("metadata", _pointer),
        ("metadata_bytes", _size),
        ("ttl", _ms),
        ("grace", _ms),
        ("rank", ctypes.c_uint),
        ("explicit_ack", ctypes.c_bool),
        ("options", _pointer),
        ("watchdog", _pointer),
        ("watchdog_ctx", _pointer),
        ("watchdog_abort", ctypes.c_bool),
        ("log", Log),
    ]


class Observation(Structure):
    _fields_ = [
        ("leading", ctypes.c_bool),
        ("taking_over", ctypes.c_bool),
        ("identity", ctypes.c_char * 766),
        ("fence", ctypes.c_uint64),
        ("last_fence", ctypes.c_uint64),
        ("since_us", ctypes.c_uint64),
        ("remaining", _ms),
        ("metadata_bytes", _size),
        ("metadata", ctypes.c_ubyte * 1024),
    ]


LeaderChange = CFUNCTYPE(None, _pointer, _pointer, ctypes.c_bool)


def call(name, *types, result=ctypes.c_int):
    """One exported function, by the types of its arguments."""
    function = next(getattr(library, name) for library in _libraries if hasattr(library, name))
    function.argtypes, function.restype = types, result
    return function


def coordctl(*arguments, given=b""):
    """Run it to its end. @return what it prints."""
    command = [program, *arguments]
    return subprocess.run(command, check=True, input=given, stdout=subprocess.PIPE).stdout


error_name = call("coord_err_name", ctypes.c_int, result=ctypes.c_char_p)
error_class = call("coord_err_class", ctypes.c_int)


def schemes(**backends):
    """A table: schemes by the name of the function that gives the backend."""
    lines = [
        Scheme(scheme.encode(), ctypes.cast(call(ops, result=_pointer), _pointer), None)
        for ops, names in backends.items()
        for scheme in names
    ]
    return (Scheme * (len(lines) + 1))(*lines)


class Runtime:
    """Helper threads that drive whatever is opened with it."""

    _new = call("coord_runtime_new", _pointer, POINTER(_pointer), POINTER(Error))
    _start = call("coord_runtime_start", _pointer, POINTER(Error))
    _free = call("coord_runtime_free", _pointer, result=None)

    def __init__(self):
        self.handle = _pointer()
        error = Error()
        check(self._new(None, byref(self.handle), byref(error)), error)
        check(self._start(self.handle, byref(error)), error)

    def free(self):
        self._free(self.handle)
        self.handle = None


def check(code, error=None):
    """Raise what a code means: of the store, as the port of electors says it, or of ours."""
    if code == OK:
        return
    text = error_name(code).decode() + (f": {error.text.decode()}" if error else "")
    raise ConnectionError(text) if error_class(code) in (RETRY, REFUSED) else Failure(text)

