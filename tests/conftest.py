"""What every test may ask for."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from downriver.capture.spark.local import spark_environment
from tests.postgres import PostgresUnavailableError, running_postgres
from tests.spark import SparkUnavailableError, running_spark

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


POSTGRES_MISSING = pytest.StashKey[str]()
SPARK_MISSING = pytest.StashKey[str]()


@pytest.fixture(scope="session", autouse=True)
def java_for_spark(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Where the machine has no Java, whatever starts Spark gets the one of the wheel."""
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        folder = tmp_path_factory.mktemp("java")
        os.environ.update(spark_environment(version("pyspark"), folder))


@pytest.fixture(scope="session")
def postgres_url(pytestconfig: pytest.Config) -> Iterator[str]:
    """A real PostgreSQL server. Without one, its tests are skipped; in CI they fail."""
    with ExitStack() as stack:
        try:
            url = stack.enter_context(running_postgres(fsync=False))
        except PostgresUnavailableError as exc:
            if os.environ.get("CI") == "true":
                pytest.fail(str(exc), pytrace=False)
            pytestconfig.stash[POSTGRES_MISSING] = str(exc)
            pytest.skip(str(exc))
        yield url


@pytest.fixture
def postgres_database(postgres_url: str) -> Iterator[str]:
    """The URL of an empty database, dropped after the test."""
    name = f"test_{uuid4().hex}"
    _administer(postgres_url, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    yield urlsplit(postgres_url)._replace(path=f"/{name}").geturl()
    _administer(postgres_url, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _administer(url: str, statement: sql.Composed) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


@pytest.fixture(scope="session")
def spark_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the tests' Spark keeps its warehouse and everything else."""
    return tmp_path_factory.mktemp("spark").resolve()


@pytest.fixture(scope="session")
def spark(pytestconfig: pytest.Config, spark_folder: Path) -> Iterator[Any]:
    """One Spark session for the whole run. Without Java, its tests are skipped; in CI they fail."""
    with ExitStack() as stack:
        try:
            session = stack.enter_context(running_spark(spark_folder))
        except SparkUnavailableError as exc:
            if os.environ.get("CI") == "true":
                pytest.fail(str(exc), pytrace=False)
            pytestconfig.stash[SPARK_MISSING] = str(exc)
            pytest.skip(str(exc))
        yield session


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say it loudly when the tests of a real part did not run."""
    for part, missing in (("PostgreSQL", POSTGRES_MISSING), ("Spark", SPARK_MISSING)):
        if reason := config.stash.get(missing, None):
            terminalreporter.section(f"the {part} tests DID NOT RUN", red=True, bold=True)
            terminalreporter.line(reason, red=True)
