"""`downriver graph --push`: what can go wrong before a single node is written."""

from __future__ import annotations

import pytest
from tests.server import free_port

from downriver.cli.graph import neo4j_driver
from downriver.errors import InvalidRequestError, ServerUnreachableError


@pytest.mark.parametrize("uri", ["http://x", "bolt", "localhost:7687", "bolt://"])
def test_what_is_no_address_of_neo4j_is_refused(uri):
    with pytest.raises(InvalidRequestError, match="--push"), neo4j_driver(uri):
        pass


def test_a_database_that_is_down_is_an_error_of_ours():
    uri = f"bolt://127.0.0.1:{free_port()}"
    with pytest.raises(ServerUnreachableError, match=uri), neo4j_driver(uri):
        pass
