"""The location of the store: given, or the nearest `.downriver/` above the working directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from downriver import settings
from downriver.errors import InvalidRequestError, MissingDependencyError, StoreNotFoundError
from downriver.store.sqlite import MEMORY, MemoryStore, SqliteStore

if TYPE_CHECKING:
    from downriver.store.port import Store

FOLDER = ".downriver"
FILE = "lineage.db"


def open_store(location: str | None = None, *, create: bool = True) -> Store:
    """Open the store at `location`, else DOWNRIVER_STORE, else the nearest `.downriver/`.

    `:memory:` is a new store that is deleted when it is closed. Without `create`, a missing
    embedded store is an error rather than a new, empty one.
    """
    location = location or settings.read_text(settings.STORE)
    if location == MEMORY:
        return MemoryStore()
    if location.startswith(("postgresql://", "postgres://")):
        return _open_postgres(location)
    if "://" in location:
        scheme = location.partition("://")[0]  # the rest may hold a password
        raise InvalidRequestError("store", f"{scheme}://… is neither a path nor postgresql://…")
    path = _file_in(Path(location)) if location else _nearest(Path.cwd())
    if not create and not (path.exists() and path.stat().st_size):
        raise StoreNotFoundError(location or str(Path.cwd()), upwards=not location)
    return SqliteStore(path)


def find_home() -> Path:
    """Return the folder of the embedded store. It may not exist yet."""
    location = settings.read_text(settings.STORE)
    if location and "://" not in location:
        return _file_in(Path(location)).resolve().parent
    return _nearest(Path.cwd()).parent


def _file_in(path: Path) -> Path:
    path = path.expanduser()
    return path if path.suffix == ".db" else path / FILE


def _nearest(start: Path) -> Path:
    for folder in (start, *start.parents):
        if (folder / FOLDER / FILE).exists():
            return folder / FOLDER / FILE
    return start / FOLDER / FILE


def _open_postgres(url: str) -> Store:
    try:
        from downriver.store.postgres.store import PostgresStore
    except ModuleNotFoundError as exc:
        raise MissingDependencyError("psycopg", "postgres") from exc
    return PostgresStore(url)
