"""Every error Downriver raises on purpose. Each carries data and says who acts next.

DownriverError
├── InvalidEventError          an event that cannot be read; the producer mends it
├── EventTooLargeError         an event over the size limit
├── InvalidRequestError        a parameter or option that makes no sense
├── InvalidAssetError          an asset that cannot be registered as described
├── EntityNotFoundError        no such dataset, column or job; near matches are offered
├── AmbiguousNameError         a name that means several things; the candidates are listed
├── StoreError                 the store cannot be used
│   ├── StoreNotFoundError     there is no store here yet
│   ├── StoreVersionError      the store was written by a newer Downriver
│   └── StoreBusyError         too much is waiting to be written; try again (transient)
├── ServerError                a Downriver server cannot be asked, or answered what makes no sense
│   └── ServerUnreachableError nothing answers at its address; try again (transient)
├── LakeError                  the lake cannot be used
│   ├── LakeNotFoundError      there is no lake here yet
│   └── LakeBusyError          another process changed it meanwhile; try again (transient)
├── UnauthorizedError          no key, or an unknown or revoked one
├── ForbiddenError             a key whose role does not allow this
└── MissingDependencyError     an optional package is not installed
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class DownriverError(Exception):
    """The root of the tree: what went wrong, where, and what to do."""

    retriable = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidEventError(DownriverError):
    """An OpenLineage event that cannot be read. `field` is where, as a dotted path."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}" if field else reason)
        self.field = field
        self.reason = reason


class EventTooLargeError(DownriverError):
    """A request body over the limit that DOWNRIVER_MAX_EVENT_MB sets."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(
            f"the body is larger than {limit_bytes // 2**20} MB; "
            "send fewer events at once, or raise DOWNRIVER_MAX_EVENT_MB on the server"
        )
        self.limit_bytes = limit_bytes


class InvalidRequestError(DownriverError):
    """A parameter, option or setting that makes no sense. `field` names it."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class InvalidAssetError(DownriverError):
    """An asset that cannot be registered as described. `field` names what is wrong."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class EntityNotFoundError(DownriverError):
    """Nothing in the catalog has this name. An unknown entity is never an empty answer."""

    def __init__(self, name: str, near: Sequence[str] = ()) -> None:
        hint = f" Did you mean: {', '.join(near)}?" if near else ""
        super().__init__(f"nothing here is called {name!r}.{hint}")
        self.name = name
        self.near = list(near)


class AmbiguousNameError(DownriverError):
    """A short name that fits several entities; one of `candidates` must be named in full."""

    def __init__(self, name: str, candidates: Sequence[str]) -> None:
        super().__init__(
            f"{name!r} could be any of: {', '.join(candidates)}. Use one of these ids instead."
        )
        self.name = name
        self.candidates = list(candidates)


class StoreError(DownriverError):
    """The store cannot be opened, read or written."""


class StoreNotFoundError(StoreError):
    """A command that only reads found no store to read."""

    def __init__(self, looked_in: str, *, upwards: bool) -> None:
        above = " or any folder above it" if upwards else ""
        super().__init__(
            f"no Downriver store in {looked_in}{above}; "
            "`downriver ingest FILE` makes one, DOWNRIVER_STORE names another"
        )
        self.looked_in = looked_in


class StoreVersionError(StoreError):
    """The store has migrations this version does not know."""

    def __init__(self, found: int, known: int) -> None:
        super().__init__(
            f"the store is at migration {found}, this Downriver knows up to {known}; "
            "upgrade Downriver"
        )
        self.found = found
        self.known = known


class StoreBusyError(StoreError):
    """Too much is waiting to be written. Nothing was stored; the same request may succeed later."""

    retriable = True

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}; try again in a moment")


class ServerError(DownriverError):
    """A server that was asked did not answer as a Downriver server does."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"{url}: {reason}")
        self.url = url
        self.reason = reason


class ServerUnreachableError(ServerError):
    """Nothing answers at the address of a server, or not in time."""

    retriable = True


class UnauthorizedError(DownriverError):
    """The request has no API key, or one that is unknown or revoked."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"{reason}; send `Authorization: Bearer KEY` (see `downriver keys create`)"
        )


class ForbiddenError(DownriverError):
    """The key is good, but its role does not allow this."""

    def __init__(self, role: str, needed: str) -> None:
        super().__init__(f"this needs a key with role {needed}; yours has role {role}")
        self.role = role
        self.needed = needed


class MissingDependencyError(DownriverError):
    """A capability needs an optional package."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; run: pip install 'downriver[{extra}]'")
        self.package = package
        self.extra = extra


class LakeError(DownriverError):
    """The lake cannot be read or written."""


class LakeNotFoundError(LakeError):
    """A command that only reads found no lake to read."""

    def __init__(self, place: str) -> None:
        super().__init__(f"no lake in {place}; `downriver lake ingest SRC` makes one")
        self.place = place


class LakeBusyError(LakeError):
    """Another process changed the lake meanwhile. Nothing was added; the same may succeed now."""

    retriable = True

    def __init__(self, place: str) -> None:
        super().__init__(f"another process changed the lake in {place} meanwhile; try again")
        self.place = place
