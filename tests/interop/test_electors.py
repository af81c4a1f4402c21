# SPDX-License-Identifier: MIT
"""The conformance suite of eventsource-py, against each elector of coord."""

import contextlib
import itertools

import pytest
from eventsource.testing.conformance_ports.coordination import LeaderElectorConformance

from elector import Elector
from library import coordctl

_count = itertools.count()


@pytest.fixture(scope="session")
def postgres_uri(postgres_server):
    coordctl("init", "--elector", postgres_server.uri)
    return postgres_server.uri


class Conformance(LeaderElectorConformance):
    """Two candidates of an election of their own, on the store that `uri` names."""

    @pytest.fixture
    def name(self, uri):
        name = f"conformance-{next(_count)}"
        if not uri.startswith("memory:"):
            # Where a store is new, a leader of before might be unknown to it: one lease is waited.
            # Here nobody can have led.
            coordctl("init", "--elector", uri, "--name", name)
        return name

    @pytest.fixture
    async def elector(self, uri, name):
        async with contextlib.aclosing(Elector(uri, name, "ours")) as elector:
            yield elector

    @pytest.fixture
    async def rival(self, uri, name):
        async with contextlib.aclosing(Elector(uri, name, "rival")) as elector:
            yield elector


class TestMemory(Conformance):
    @pytest.fixture
    def uri(self):
        return "memory:conformance"


class TestFile(Conformance):
    @pytest.fixture
    def uri(self, tmp_path):
        return f"file:{tmp_path}"


class TestRedis(Conformance):
    @pytest.fixture
    def uri(self, redis_server):
        return redis_server.uri


class TestPostgres(Conformance):
    @pytest.fixture
    def uri(self, postgres_uri):
        return postgres_uri
