"""API keys: stored as a hash with a role; revoked keys are kept."""

from __future__ import annotations

import hashlib
import secrets
import time
from enum import IntEnum
from typing import TYPE_CHECKING

import msgspec

from downriver.errors import EntityNotFoundError, InvalidRequestError

if TYPE_CHECKING:
    from downriver.store.port import SqlTransaction


class KeyRole(IntEnum):
    """What a key allows; each role includes the roles before it."""

    READER = 1
    WRITER = 2
    ADMIN = 3


class ApiKey(msgspec.Struct, frozen=True):
    """An API key without the key itself."""

    name: str
    role: str
    created_at: int
    revoked_at: int | None


def parse_role(text: str) -> KeyRole:
    """Return the role with this name."""
    try:
        return KeyRole[text.upper()]
    except KeyError as exc:
        raise InvalidRequestError("role", f"{text!r} is not reader, writer or admin") from exc


def key_digest(key: str) -> bytes:
    """Return the stored hash of a key. A key is long and random, so a fast hash is enough."""
    return hashlib.sha256(key.encode()).digest()


def add_key(tx: SqlTransaction, name: str, role: KeyRole) -> str:
    """Store a new key and return it; it cannot be read again."""
    if not name.strip():
        raise InvalidRequestError("name", "empty")
    if tx.rows("SELECT name FROM api_keys WHERE name = ?", (name,)):
        raise InvalidRequestError("name", f"a key named {name!r} exists already")
    key = f"dr_{secrets.token_urlsafe(32)}"
    tx.execute(
        "INSERT INTO api_keys (name, role, digest, created_at) VALUES (?, ?, ?, ?)",
        (name, role.name.lower(), key_digest(key), _now()),
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
