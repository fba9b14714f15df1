"""The errors of Downriver. Each error carries data, and its message states what to do next.

DownriverError
├── InvalidEventError          an event cannot be parsed; fix the producer
├── EventTooLargeError         an event is over the size limit
├── InvalidRequestError        a parameter, option or setting is invalid
├── InvalidAssetError          an asset cannot be registered as described
├── EntityNotFoundError        no dataset, column or job has this name; lists similar names
├── ColumnsNotFoundError       the dataset or job exists, but none of its columns are known
├── AmbiguousNameError         a name matches several entities; lists the candidates
├── CodeLimitError             reading code takes more time or memory than is allowed
├── StoreError                 the store cannot be used
│   ├── StoreNotFoundError     there is no store here yet
│   ├── StoreVersionError      a newer version of Downriver wrote the store
│   └── StoreBusyError         the write queue is full; try again (transient)
├── SpoolFullError             there is no room for unsent events; they were dropped
├── ServerError                a Downriver server gave an unexpected response
│   └── ServerUnreachableError no response from the address; try again (transient)
├── LakeError                  the lake cannot be used
│   ├── LakeNotFoundError      there is no lake here yet
│   ├── LakeTableNotFoundError a query names a table that the lake does not have
│   ├── LakeBusyError          another process changed the lake; try again (transient)
│   └── NoEventLogError        a server of a lake has no log in the order of arrival
├── ModelError                 a language model failed or exceeded its limits
├── UnauthorizedError          no API key, or an unknown, expired or revoked one
├── ForbiddenError             the role or the namespaces of the API key do not allow this
├── LowQualityError            a dataset has a lower quality score than is required
└── MissingDependencyError     an optional package is not installed
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self

_LISTED = 10  # names in a message


class DownriverError(Exception):
    """The base class. `message` states the problem, the place, and what to do."""

    retriable = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidEventError(DownriverError):
    """An OpenLineage event cannot be parsed. `field` is the place, as a dotted path."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}" if field else reason)
        self.field = field
        self.reason = reason


class EventTooLargeError(DownriverError):
    """A request body is larger than DOWNRIVER_MAX_EVENT_MB."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(
            f"the body is larger than {limit_bytes // 2**20} MB; "
            "send fewer events at once, or increase DOWNRIVER_MAX_EVENT_MB on the server"
        )
        self.limit_bytes = limit_bytes


class InvalidRequestError(DownriverError):
    """A parameter, option or setting is invalid. `field` names it."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class InvalidAssetError(DownriverError):
    """An asset cannot be registered as described. `field` names the part that is wrong."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class EntityNotFoundError(DownriverError):
    """No entity of the catalog has this name. An unknown entity is never an empty answer."""

    def __init__(self, name: str, near: Sequence[str] = ()) -> None:
        hint = f" Did you mean: {', '.join(near)}?" if near else ""
        super().__init__(f"No dataset, column or job named {name!r}.{hint}")
        self.name = name
        self.near = list(near)


class ColumnsNotFoundError(DownriverError):
    """The dataset or job exists, but no event contained a column of it."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The columns of {name!r} are unknown: no event contained a schema or columnLineage "
            "facet for it."
        )
        self.name = name


class AmbiguousNameError(DownriverError):
    """A short name matches several entities; use the id of one of the `candidates`."""

    def __init__(self, name: str, candidates: Sequence[str]) -> None:
        super().__init__(
            f"{name!r} matches several entities: {', '.join(candidates)}. Use one of these ids."
        )
        self.name = name
        self.candidates = list(candidates)


class CodeLimitError(DownriverError):
    """Reading or simulating code took more time or memory than is allowed, and was stopped."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the code was not read, because {reason}; send less code, or increase the limits "
            "DOWNRIVER_CODE_SECONDS, DOWNRIVER_CODE_MB and DOWNRIVER_ANSWER_MB of the server"
        )
        self.reason = reason


class StoreError(DownriverError):
    """The store cannot be opened, read or written."""


class StoreNotFoundError(StoreError):
    """A command that only reads found no store."""

    def __init__(self, looked_in: str, *, upwards: bool) -> None:
        above = " or any folder above it" if upwards else ""
        super().__init__(
            f"no Downriver store in {looked_in}{above}; "
            "run `downriver ingest FILE` to create one, or set DOWNRIVER_STORE"
        )
        self.looked_in = looked_in


class StoreVersionError(StoreError):
    """The store has migrations that this version does not have."""

    def __init__(self, store_version: int, known: int) -> None:
        super().__init__(
            f"the store is at migration {store_version}, but this version of Downriver "
            f"only supports migrations up to {known}; upgrade Downriver"
        )
        self.found = store_version
        self.known = known


class StoreBusyError(StoreError):
    """The write queue is full. Nothing was stored; the same request may succeed later."""

    retriable = True

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}; try again in a moment")


class SpoolFullError(DownriverError):
    """The folder of unsent events has reached its largest size. The events were dropped."""

    retriable = True

    def __init__(self, folder: str, dropped: int, limit_mb: int) -> None:
        super().__init__(
            f"{dropped} events were dropped, because the spool {folder} is at its limit of"
            f" {limit_mb} MB; send the events with `downriver spool flush`, or increase "
            "DOWNRIVER_SPOOL_MB"
        )


class ServerError(DownriverError):
    """A server gave a response that a Downriver server does not give."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"{url}: {reason}")
        self.url = url
        self.reason = reason


class ServerUnreachableError(ServerError):
    """No response from the address of a server, or not in time."""

    retriable = True


class UnauthorizedError(DownriverError):
    """The request has no API key or token, or one that is unknown, expired or revoked."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"{reason}; send `Authorization: Bearer KEY` (see `downriver keys create`)"
        )


class ForbiddenError(DownriverError):
    """The API key is valid, but its role or its namespaces do not allow this.

    `outside` lists the datasets and jobs that are in none of its namespaces.
    """

    def __init__(self, message: str, outside: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.outside = list(outside)

    @classmethod
    def of_role(cls, role: str, needed: str) -> Self:
        """Return the error for a key with another role."""
        return cls(f"this request needs an API key with role {needed}; this key has role {role}")

    @classmethod
    def of_namespaces(cls, outside: Sequence[str], patterns: Sequence[str]) -> Self:
        """Return the error for a write outside the namespaces of a key."""
        listed = ", ".join(outside[:_LISTED])
        more = f" and {len(outside) - _LISTED} more" if len(outside) > _LISTED else ""
        return cls(
            f"{listed}{more}: outside the namespaces of this API key ({', '.join(patterns)}). "
            "No part of the event was stored; use a key for these namespaces",
            outside,
        )

    @classmethod
    def of_whole_store(cls, route: str, patterns: Sequence[str]) -> Self:
        """Return the error for a route that only answers for the whole store."""
        return cls(
            f"{route} is about the whole store, and this API key is limited to the namespaces "
            f"{', '.join(patterns)}; use a key without namespaces"
        )


class ModelError(DownriverError):
    """A language model failed or exceeded its limits."""

    def __init__(self, model: str, reason: str) -> None:
        super().__init__(f"{model}: {reason}; use `offline` to run without a model")
        self.model = model
        self.reason = reason


class LowQualityError(DownriverError):
    """The quality score of a dataset is lower than required, or unknown (None)."""

    def __init__(self, dataset: str, score: float | None, required: float) -> None:
        known = "an unknown quality score" if score is None else f"the quality score {score:g}"
        super().__init__(f"{dataset} has {known}; {required:g} is required")
        self.dataset = dataset
        self.score = score
        self.required = required


class MissingDependencyError(DownriverError):
    """An optional package is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; run: pip install 'downriver[{extra}]'")
        self.package = package
        self.extra = extra


class LakeError(DownriverError):
    """The lake cannot be read or written."""


class LakeNotFoundError(LakeError):
    """A command that only reads found no lake."""

    def __init__(self, place: str) -> None:
        super().__init__(f"no lake in {place}; run `downriver lake ingest FILE` to create one")
        self.place = place


class LakeTableNotFoundError(LakeError):
    """A query names a table that the lake does not have."""

    def __init__(self, name: str, tables: Sequence[str], near: Sequence[str] = ()) -> None:
        hint = f" Did you mean: {', '.join(near)}?" if near else ""
        listed = f"Its tables: {', '.join(tables)}." if tables else "Run `downriver lake build`."
        super().__init__(f"the lake has no table {name!r}.{hint} {listed}")
        self.name = name
        self.tables = list(tables)
        self.near = list(near)


class LakeBusyError(LakeError):
    """Another process changed the lake at the same time. Nothing was added; try again."""

    retriable = True

    def __init__(self, place: str) -> None:
        super().__init__(f"another process changed the lake in {place} at the same time; try again")
        self.place = place


class NoEventLogError(LakeError):
    """A question about the log of events, to a server that answers from a lake."""

    def __init__(self, place: str) -> None:
        super().__init__(
            f"the lake in {place} has no log in the order of arrival; copy its events into a store "
            "with `downriver lake publish`, and serve the store"
        )
        self.place = place


def describe_failure(exc: Exception) -> str:
    """Return the reason of a failed connection or file access, without the number of the error."""
    cause = getattr(exc, "reason", exc)  # urllib wraps the error of the connection
    return getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
