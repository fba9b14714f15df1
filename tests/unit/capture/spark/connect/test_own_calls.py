"""A server of Spark Connect that does not answer: capture ends its calls, and the job goes on."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from downriver.capture.spark.connect.actions import ConnectActions
from downriver.capture.spark.connect.client import ConnectServer
from downriver.capture.spark.connect.driver_data import DriverData
from downriver.capture.spark.connect.own_calls import is_own_call, own_call
from downriver.capture.spark.connect.requests import ReadRequest, WriteRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

grpc = pytest.importorskip("grpc")
_LONG = 600  # seconds that a call of PySpark would wait for a server that is gone


@contextmanager
def _silent_server() -> Iterator[str]:
    """Run a server that takes every request and answers none; yield its address."""
    over = threading.Event()

    class Silent(grpc.GenericRpcHandler):  # type: ignore[misc]
        def service(self, call: Any) -> Any:
            return grpc.unary_unary_rpc_method_handler(lambda *_: over.wait(_LONG))

    server = grpc.server(ThreadPoolExecutor(8), handlers=[Silent()])
    port = server.add_insecure_port("localhost:0")
    server.start()
    try:
        yield f"sc://localhost:{port}"
    finally:
        over.set()
        server.stop(None)


@pytest.fixture
def connect() -> Iterator[Callable[[str], Any]]:
    """Yield a function that makes a client of PySpark for an address."""
    module = pytest.importorskip("pyspark.sql.connect.client")
    clients: list[Any] = []

    def make(address: str) -> Any:
        clients.append(module.SparkConnectClient(address))
        return clients[-1]

    yield make
    for client in clients:
        client.close()  # a client that is open at exit waits for its server


def _plan() -> Any:
    proto = pytest.importorskip("pyspark.sql.connect.proto")
    return proto.Plan(root=proto.Relation(range=proto.Range(end=3, step=1)))


def test_a_server_that_does_not_answer_ends_a_call(connect: Callable[[str], Any]) -> None:
    with _silent_server() as address:
        server = ConnectServer(connect(address), seconds=1.0)
        began = time.monotonic()
        with pytest.raises(TimeoutError, match="did not answer in time"):
            server.explain(_plan())
        assert time.monotonic() - began < _LONG / 2


def test_a_server_that_did_not_answer_is_not_asked_again_at_once(
    connect: Callable[[str], Any],
) -> None:
    with _silent_server() as address:
        server = ConnectServer(connect(address), seconds=1.0)
        with pytest.raises(TimeoutError):
            server.setting("spark.app.name")
        with pytest.raises(TimeoutError, match="a moment ago"):
            server.rows("DESCRIBE TABLE t")


def test_a_server_that_is_gone_ends_a_call(connect: Callable[[str], Any]) -> None:
    with _silent_server() as address:
        pass
    began = time.monotonic()
    with pytest.raises((ConnectionError, TimeoutError)):
        ConnectServer(connect(address), seconds=30.0).setting("spark.app.name")
    assert time.monotonic() - began < _LONG / 2


def test_requests_that_the_server_does_not_describe_are_blind_spots(
    connect: Callable[[str], Any],
) -> None:
    with _silent_server() as address:
        server = ConnectServer(connect(address), seconds=1.0)
        actions = ConnectActions(server, DriverData(lambda *_: {}))
        requests = [WriteRequest(_plan(), table="t"), ReadRequest(_plan())]
        write, read = actions.read(requests, "saveAsTable", 0, 1, "")
    assert "saveAsTable" in write.unknown_write
    assert read.unread


def test_calls_of_the_job_keep_having_no_deadline(connect: Callable[[str], Any]) -> None:
    client = connect("sc://localhost:1")
    with own_call(client):
        assert is_own_call()
        with own_call(client):
            pass
        assert is_own_call()
    assert not is_own_call()
    release = client._stub.ReleaseSession
    assert release == client._stub._stub.ReleaseSession
