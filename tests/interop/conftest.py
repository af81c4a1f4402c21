# SPDX-License-Identifier: MIT
"""Servers for the tests, and the closing lines that tests/run.sh counts."""

import pytest

import servers


@pytest.fixture(scope="session")
def redis_server():
    with servers.Redis() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_server():
    with servers.Postgres() as server:
        yield server


def pytest_terminal_summary(terminalreporter):
    """The lines with which the tests in C close, too."""
    told = terminalreporter.stats
    passed, skipped = len(told.get("passed", ())), len(told.get("skipped", ()))
    failed = len(told.get("failed", ())) + len(told.get("error", ()))
    write = terminalreporter.write_line
    write(f"[==========] {passed + skipped + failed} test(s) run.")
    write(f"[  PASSED  ] {passed} test(s).")
    if skipped:
        write(f"[  SKIPPED ] {skipped} test(s).")
    if failed:
        write(f"[  FAILED  ] {failed} test(s).")
