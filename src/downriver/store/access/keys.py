"""API keys: stored as a hash with a role, namespaces and an expiry; revoked keys are kept."""

from __future__ import annotations

import hashlib
import secrets
import time
from enum import IntEnum
from typing import TYPE_CHECKING

import msgspec

from downriver.errors import EntityNotFoundError, InvalidRequestError
from downriver.model.access import Scope

if TYPE_CHECKING:
    from downriver.store.port import Row, SqlQueries, SqlTransaction

_LONGEST_NAME = 200
_MOST_PATTERNS = 100
_COLUMNS = "name, role, created_at, revoked_at, namespaces, expires_at"


class KeyRole(IntEnum):
    """What a key allows; each role includes the roles before it."""

    READER = 1
    WRITER = 2
    ADMIN = 3


class ApiKey(msgspec.Struct, frozen=True):
    """The record of an API key, without the secret. Without namespaces, the key is not limited."""

    name: str
    role: str
    created_at: int
    revoked_at: int | None
    namespaces: tuple[str, ...] = ()
    expires_at: int | None = None

    @property
    def scope(self) -> Scope | None:
        """The namespaces that the key is limited to; None for all."""
        return Scope(self.namespaces) if self.namespaces else None


def parse_role(text: str) -> KeyRole:
    """Return the role with this name."""
    try:
        return KeyRole[text.upper()]
    except KeyError as exc:
        raise InvalidRequestError("role", f"{text!r} is not reader, writer or admin") from exc


def key_digest(key: str) -> bytes:
    """Return the stored hash of a key.

    A key has 256 random bits, too many to find the key by trial. So the hash need not be slow or
    salted, unlike the hash of a password.
    """
    return hashlib.sha256(key.encode()).digest()


def check_key(
    name: str, role: KeyRole, namespaces: tuple[str, ...], expires_at: int | None
) -> None:
    """Raise if the arguments for a new key are invalid."""
    if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        raise InvalidRequestError("name", f"must have 1 to {_LONGEST_NAME} printable characters")
    if role is KeyRole.ADMIN and namespaces:
        raise InvalidRequestError(
            "namespaces",
            "an admin manages the whole store, so its key cannot be limited to namespaces; use the"
            " role reader or writer",
        )
    if len(namespaces) > _MOST_PATTERNS:
        raise InvalidRequestError("namespaces", f"more than {_MOST_PATTERNS} patterns")
    for pattern in namespaces:
        if not pattern or not pattern.isprintable():
            raise InvalidRequestError("namespaces", f"{pattern!r} is not the name of a namespace")
    if expires_at is not None and expires_at <= _now():
        raise InvalidRequestError("expires", "is in the past")


def add_key(
    tx: SqlTransaction,
    name: str,
    role: KeyRole,
    namespaces: tuple[str, ...] = (),
    expires_at: int | None = None,
) -> str:
    """Store a new key and return it; it cannot be read again."""
    check_key(name, role, namespaces, expires_at)
    if tx.rows("SELECT name FROM api_keys WHERE name = ?", (name,)):
        raise InvalidRequestError("name", f"a key named {name!r} exists already")
    key = f"dr_{secrets.token_urlsafe(32)}"
    patterns = "\n".join(namespaces) or None
    tx.execute(
        "INSERT INTO api_keys (name, role, digest, created_at, namespaces, expires_at)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (name, role.name.lower(), key_digest(key), _now(), patterns, expires_at),
    )
    return key


def revoke_key(tx: SqlTransaction, name: str) -> None:
    """Revoke a key."""
    rows = tx.rows("SELECT revoked_at FROM api_keys WHERE name = ?", (name,))
    if not rows:
        raise EntityNotFoundError(name, [row[0] for row in tx.rows("SELECT name FROM api_keys")])
    if rows[0][0] is None:
        tx.execute("UPDATE api_keys SET revoked_at = ? WHERE name = ?", (_now(), name))


def _now() -> int:
    return time.time_ns() // 1000


class KeyQueries:
    """Reads API keys."""

    def __init__(self, queries: SqlQueries) -> None:
        self._queries = queries

    def list_all(self) -> list[ApiKey]:
        """Return every key, revoked ones too, without the keys themselves."""
        sql = f"SELECT {_COLUMNS} FROM api_keys ORDER BY created_at"
        return [_read_key(row) for row in self._queries.rows(sql)]

    def find(self, digest: bytes) -> ApiKey | None:
        """Return the key with this digest, if it is not revoked. It may have expired."""
        sql = f"SELECT {_COLUMNS} FROM api_keys WHERE digest = ? AND revoked_at IS NULL"
        return next(map(_read_key, self._queries.rows(sql, (digest,))), None)


def _read_key(row: Row) -> ApiKey:
    name, role, created_at, revoked_at, namespaces, expires_at = row
    patterns = tuple(namespaces.split("\n")) if namespaces else ()
    return ApiKey(name, role, created_at, revoked_at, patterns, expires_at)
