"""A Neo4j Community server from Maven Central, started for tests."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bench.maven import NEO4J, JarUnavailableError, fetch_program

from downriver.capture.spark.local_session import find_java
from tests.server import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

_OPENED = ("java.nio", "java.io", "java.util.concurrent", "sun.nio.ch")
_SETTINGS = """
dbms.security.auth_enabled=false
server.bolt.listen_address=127.0.0.1:{port}
server.http.enabled=false
server.https.enabled=false
server.memory.pagecache.size=64m
dbms.usage_report.enabled=false
"""


@contextmanager
def running_neo4j(home: Path) -> Iterator[str]:
    """Start a server with an empty database and yield its URI."""
    from neo4j import GraphDatabase
    from neo4j.exceptions import ServiceUnavailable

    jars = _jars()
    port = free_port()
    (home / "conf").mkdir(parents=True)
    (home / "conf" / "neo4j.conf").write_text(_SETTINGS.format(port=port))
    java = str(find_java(importlib.metadata.version("pyspark")))
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
    with (home / "output").open("wb") as output:
        process = subprocess.Popen(
            [java, "-Xmx512m", *opened, "-cp", f"{jars}/*", "org.neo4j.server.CommunityEntryPoint",
             f"--home-dir={home}", f"--config-dir={home / 'conf'}"],
            stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
    uri = f"bolt://127.0.0.1:{port}"
    try:
        for _ in range(600):
            if process.poll() is not None:
                break
            try:
                with GraphDatabase.driver(uri) as driver:
                    driver.verify_connectivity()
                break
            except ServiceUnavailable:
                time.sleep(0.2)
        assert process.poll() is None, (home / "output").read_text()[-2000:]
        yield uri
    finally:
        process.terminate()
        process.wait(60)


def _jars() -> Path:
    try:
        return fetch_program(NEO4J)
    except JarUnavailableError as exc:
        if os.environ.get("CI") == "true":
            pytest.fail(str(exc), pytrace=False)
        pytest.skip(str(exc))
