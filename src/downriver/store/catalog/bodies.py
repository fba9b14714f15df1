"""Bodies of facets by digest. A digest identifies one content, so a cached body stays valid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.store.catalog.encoding import read_body, rows_by_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.store.port import SqlQueries

_MOST_BYTES = 32 * 2**20  # of each of the two generations


class BodyCache:
    """A cache of recently read bodies. Safe to share between threads and stores.

    Bodies are kept in two generations. A full generation replaces the older one, so that
    bodies that are no longer read leave the cache without a list of uses.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._young: dict[bytes, bytes] = {}
        self._old: dict[bytes, bytes] = {}
        self._bytes = 0

    def find(self, digest: bytes) -> bytes | None:
        """Return a body if it is in the cache."""
        body = self._young.get(digest)
        if body is None and (body := self._old.get(digest)) is not None:
            self.add(digest, body)
        return body

    def add(self, digest: bytes, body: bytes) -> None:
        """Keep a body."""
        if self._bytes > self._most_bytes:
            self._old, self._young, self._bytes = self._young, {}, 0
        self._young[digest] = body
        self._bytes += len(body)


_cache = BodyCache()


def read_bodies(
    queries: SqlQueries, wanted: Mapping[bytes, int], facets: str
) -> dict[bytes, bytes]:
    """Return the bodies of facets as sent, by digest. Those in the cache are not read again.

    `wanted` has the number of a node or run for each digest. `facets` is the condition on the
    table `f` that selects the facets of these numbers; it ends in `IN`.
    """
    found = {digest: _cache.find(digest) for digest in wanted}
    missing = {wanted[digest] for digest, body in found.items() if body is None}
    bodies = {digest: body for digest, body in found.items() if body is not None}
    if missing:
        sql = f"""
            SELECT b.digest, b.body FROM facets f JOIN bodies b ON b.digest = f.digest
            WHERE {facets}
        """.strip()
        for stored_digest, stored in rows_by_id(queries, sql, missing):
            digest = bytes(stored_digest)
            if digest in wanted and digest not in bodies:
                bodies[digest] = body = read_body(stored)
                _cache.add(digest, body)
    return bodies
