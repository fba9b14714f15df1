"""A connection to Neo4j, by its own driver."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from downriver.errors import (
    InvalidRequestError,
    MissingDependencyError,
    ServerError,
    ServerUnreachableError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.graph.export.cypher import Driver


_SCHEMES = frozenset({"bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc"})


@contextmanager
def neo4j_driver(uri: str) -> Iterator[Driver]:
    """Connect as NEO4J_USERNAME with NEO4J_PASSWORD; what goes wrong there is an error of ours."""
    if uri.partition("://")[0] not in _SCHEMES or not urlsplit(uri).hostname:
        raise InvalidRequestError("--push", f"{uri!r} is not bolt://HOST:PORT or neo4j://HOST")
    try:
        import neo4j
        from neo4j.exceptions import DriverError, Neo4jError, ServiceUnavailable
    except ModuleNotFoundError as exc:
        raise MissingDependencyError("neo4j", "neo4j") from exc
    name, password = os.environ.get("NEO4J_USERNAME", ""), os.environ.get("NEO4J_PASSWORD", "")
    try:
        with neo4j.GraphDatabase.driver(uri, auth=(name, password) if name else None) as driver:
            driver.verify_connectivity()
            yield cast("Driver", driver)
    except ServiceUnavailable as exc:
        raise ServerUnreachableError(uri, str(exc)) from exc
    except (Neo4jError, DriverError) as exc:
        raise ServerError(uri, str(exc)) from exc
