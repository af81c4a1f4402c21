# SPDX-License-Identifier: MIT
"""Servers of the tests' own, in temporary folders, ended by their process ids."""

import contextlib
import ctypes
import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time

START_WITHIN = 60  # seconds: a guard against a server that never starts
PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None)


def until(condition, within=START_WITHIN):
    """Wait for a condition; the time is a guard, and no measure."""
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end, f"never true: {condition}"
        time.sleep(0.01)


class _Server:
    """One process; it ends with these tests, also when they are killed."""

    def __init__(self, kind):
        self.folder = tempfile.mkdtemp(prefix=f"coord-{kind}-")
        self.process = None

    def launch(self, command, end_signal, **keywords):
        self.end_signal = end_signal
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                preexec_fn=lambda: _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL), **keywords,
            )  # fmt: skip
        until(self._has_started)

    def _has_started(self):
        if self.process.poll() is not None:
            with open(os.path.join(self.folder, "log")) as log:
                raise AssertionError(f"the server ended at its start: {log.read()[-2000:]}")
        return self.answers()

    def end(self):
        if self.process is not None:
            self.process.send_signal(self.end_signal)
            self.process.wait()
            self.process = None

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)


class Redis(_Server):
    def __init__(self):
        super().__init__("redis")
        self.socket = os.path.join(self.folder, "s")
        self.uri = f"redis+unix://{self.socket}"

    def start(self):
        program = os.environ.get("REDIS_SERVER") or next(
            filter(None, map(shutil.which, ("redis-server", "valkey-server"))), None
        )
        assert program, "there is no redis-server: see scripts/deps.sh"
        self.launch(
            [program, "--port", "0", "--unixsocket", self.socket, "--dir", self.folder,
             "--save", "", "--daemonize", "no"],
            signal.SIGTERM,
        )  # fmt: skip

    def answers(self):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as link:
            link.settimeout(5)
            link.connect(self.socket)
            link.sendall(b"PING\r\n")
            return link.recv(64).startswith(b"+PONG")
        return False


def _postgres_programs():
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        asked = subprocess.run(["pg_config", "--bindir"], capture_output=True, check=True)
        if os.access(os.path.join(asked.stdout.decode().strip(), "postgres"), os.X_OK):
            return asked.stdout.decode().strip()
    found = glob.glob("/usr/lib/postgresql/*/bin/postgres")
    assert found, "there is no PostgreSQL server: see scripts/deps.sh"
    return os.path.dirname(max(found))


class Postgres(_Server):
    def __init__(self):
        super().__init__("postgres")
        self.programs = os.environ.get("PG_BINDIR") or _postgres_programs()
        self.uri = f"postgresql://postgres@/postgres?host={self.folder}"
        self.user = {}
        os.chmod(self.folder, 0o711)
        if os.geteuid() == 0:  # which PostgreSQL refuses to run as
            user = pwd.getpwnam("postgres")
            self.user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            os.chown(self.folder, user.pw_uid, user.pw_gid)

    def _program(self, name):
        return os.path.join(self.programs, name)

    def start(self):
        data = os.path.join(self.folder, "data")
        subprocess.run(
            [self._program("initdb"), "-D", data, "-U", "postgres", "-A", "trust", "--no-sync",
             "-E", "UTF8", "--locale=C.UTF-8"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd=self.folder, check=True,
            **self.user,
        )  # fmt: skip
        settings = (f"unix_socket_directories={self.folder}", "listen_addresses=", "fsync=off",
                    "shared_buffers=16MB")  # fmt: skip
        self.launch(
            [self._program("postgres"), "-D", data]
            + [word for setting in settings for word in ("-c", setting)],
            signal.SIGINT,
            **self.user,
        )

    def answers(self):
        asked = subprocess.run(
            [self._program("psql"), "-X", "-q", "-d", self.uri, "-c", "SELECT 1"],
            capture_output=True, cwd=self.folder,
        )  # fmt: skip
        return asked.returncode == 0
