"""What every test may ask for."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from tests.postgres import PostgresUnavailableError, running_postgres
from tests.spark import SparkUnavailableError, running_spark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

POSTGRES_MISSING = pytest.StashKey[str]()


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


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One local Spark for all tests. Without Java, those are skipped; in CI they fail."""
    with ExitStack() as stack:
        try:
            session = stack.enter_context(running_spark(tmp_path_factory.mktemp("spark")))
        except SparkUnavailableError as exc:
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(str(exc))
        yield session


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


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say it loudly when the PostgreSQL tests did not run."""
    if reason := config.stash.get(POSTGRES_MISSING, None):
        terminalreporter.section("the PostgreSQL tests DID NOT RUN", red=True, bold=True)
        terminalreporter.line(reason, red=True)
