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
    passed, skipped = len(told.get("passed", ())), told.get("skipped", ())
    failed = told.get("failed", []) + told.get("error", [])
    write = terminalreporter.write_line
    for report in skipped:
        write(f"[  REASON  ] {report.nodeid}: {report.longrepr[2]}")
    for report in failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        write(f"[  FAILED  ] {report.nodeid}: {crash.message.splitlines()[0] if crash else ''}")
    write(f"[==========] {passed + len(skipped) + len(failed)} test(s) run.")
    write(f"[  PASSED  ] {passed} test(s).")
    if skipped:
        write(f"[  SKIPPED ] {len(skipped)} test(s).")
    if failed:
        write(f"[  FAILED  ] {len(failed)} test(s).")
