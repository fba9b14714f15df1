"""`downriver graph --push`: errors before anything is written."""

from __future__ import annotations

import pytest
from tests.server import free_port

from downriver.cli.graph import neo4j_driver
from downriver.errors import InvalidRequestError, ServerUnreachableError


@pytest.mark.parametrize("uri", ["http://x", "bolt", "localhost:7687", "bolt://"])
def test_an_invalid_neo4j_uri_is_refused(uri):
    with pytest.raises(InvalidRequestError, match="--push"), neo4j_driver(uri):
        pass


def test_an_unreachable_database_is_a_downriver_error():
    uri = f"bolt://127.0.0.1:{free_port()}"
    with pytest.raises(ServerUnreachableError, match=uri), neo4j_driver(uri):
        pass
