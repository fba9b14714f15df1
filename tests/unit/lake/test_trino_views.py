"""Trino's own parser, from Maven Central, reads the statements for Trino."""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest
from bench.maven import TRINO_PARSER, JarUnavailableError, fetch_program
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError
from tests.unit.cli.command import downriver

from downriver.capture.spark.local_session import find_java
from downriver.errors import InvalidRequestError
from downriver.lake.trino_views import render_trino

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def parser() -> Iterator[Any]:
    """The parser of Trino, in a process of its own."""
    try:
        jars = fetch_program(TRINO_PARSER)
    except JarUnavailableError as exc:
        if os.environ.get("CI") == "true":
            pytest.fail(str(exc), pytrace=False)
        pytest.skip(str(exc))
    (py4j,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    port, token = launch_gateway(
        jarpath=str(py4j),
        classpath=f"{jars}/*",
        java_path=str(find_java(importlib.metadata.version("pyspark"))),
        die_on_exit=True,
        enable_auth=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    yield gateway.jvm.io.trino.sql.parser.SqlParser()
    gateway.shutdown()


def test_trino_parses_every_statement(parser: Any) -> None:
    statements = render_trino("s3://lake/it's", "hive.lineage").split(";\n")
    kinds = [
        parser.createStatement(statement).getClass().getSimpleName()
        for statement in filter(None, statements)
    ]
    assert kinds[:2] == ["CreateSchema", "Use"]
    assert kinds.count("CreateTable") == 25
    assert kinds[27:] == ["CreateView"] * 4
    with pytest.raises(Py4JJavaError, match="ParsingException"):
        parser.createStatement("CREATE TABLE x (a STRUCT<b: STRING>)")


def test_the_command_needs_no_lake(tmp_path: Path) -> None:
    done = downriver("lake", "views", "--trino", "s3://lake/x", cwd=tmp_path)
    assert done.stdout == render_trino("s3://lake/x", "hive.lineage")
    with pytest.raises(InvalidRequestError, match="CATALOG"):
        render_trino("s3://lake/x", "lineage")
