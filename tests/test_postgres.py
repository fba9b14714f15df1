"""The PostgreSQL server of the tests: real, private, and removed afterwards."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

import psycopg
import pytest

from tests.postgres import PREFERENCE_VARIABLE, PostgresUnavailableError, running_postgres

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def closed_last() -> Iterator[ExitStack]:
    """Resources that are closed after the database, if this fixture is requested before it."""
    with ExitStack() as stack:
        yield stack


def test_each_test_gets_an_empty_database_of_its_own(postgres_url, postgres_database):
    with psycopg.connect(postgres_database) as connection:
        connection.execute("CREATE TABLE mark ()")
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT to_regclass('mark')").fetchone() == (None,)


def test_a_database_is_dropped_though_a_connection_is_open(closed_last, postgres_database):
    closed_last.enter_context(closing(psycopg.connect(postgres_database)))


@pytest.mark.usefixtures("postgres_url")  # skips if no server is available
def test_a_server_uses_fsync_by_default_and_stops_at_the_end():
    with running_postgres() as url, psycopg.connect(url) as connection:
        assert connection.execute("SHOW fsync").fetchone() == ("on",)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)


def test_an_unknown_kind_of_server_is_refused(monkeypatch):
    monkeypatch.setenv(PREFERENCE_VARIABLE, "cloud")
    with pytest.raises(PostgresUnavailableError, match="'system' or 'wheel'"), running_postgres():
        pass
