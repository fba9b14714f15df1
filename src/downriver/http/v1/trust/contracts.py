"""Data contracts, and the compatibility of schemas."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from starlette.concurrency import run_in_threadpool

from downriver.govern.contracts import StatedContract, parse_contract
from downriver.govern.schemas import parse_schema
from downriver.http.endpoint import NAMED, Endpoint, answers
from downriver.http.request import (
    context_of,
    json_response,
    query_number,
    query_text,
    read_struct,
    run_read,
)
from downriver.model.trust.contracts import ContractChanges, ContractChecks
from downriver.model.trust.schemas import CompatibilityMode, SchemaCheck, SchemaDiff
from downriver.store import KeyRole

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_SUFFIXES = {"avro": ".avsc", "json-schema": ".json", "protobuf": ".proto"}
_MOST_VERSIONS = 1_000_000


class ContractsRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Contracts as their YAML files state them. With `dry_run`, nothing changes."""

    contracts: list[dict[str, Any]]
    dry_run: bool = False


class ContractCheckRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Contracts to check (default: the applied ones), and the moment of the check."""

    contracts: list[dict[str, Any]] | None = None
    at: str | None = None
    record: bool = True


class SchemaCheckRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A schema to compare with the current one of a dataset; without, the version before."""

    dataset: str
    mode: CompatibilityMode | None = None
    schema: str | None = None
    format: Literal["avro", "json-schema", "protobuf"] = "avro"
    message: str | None = None


def _parse_documents(documents: list[dict[str, Any]]) -> list[StatedContract]:
    return [
        StatedContract(contract)
        for number, document in enumerate(documents)
        for contract in parse_contract(document, f"contracts[{number}]")
    ]


async def get_contracts(request: Request) -> Response:
    """Return the applied contracts with their outcome now: `?at=`. Nothing is recorded."""
    check = context_of(request).lineage.contracts
    at = request.query_params.get("at")
    return json_response(await run_read(request, check, at=at, record=False))


async def post_contracts(request: Request) -> Response:
    """Keep contracts in the store: `{"contracts": […], "dry_run": false}`."""
    asked = await read_struct(request, ContractsRequest)
    apply = partial(
        context_of(request).lineage.contracts.apply,
        _parse_documents(asked.contracts),
        done=not asked.dry_run,
    )
    return json_response(await run_in_threadpool(apply))


async def post_contract_check(request: Request) -> Response:
    """Check contracts and record the outcomes: `{"contracts": […], "at": …, "record": true}`."""
    asked = await read_struct(request, ContractCheckRequest)
    check = partial(
        context_of(request).lineage.contracts,
        None if asked.contracts is None else _parse_documents(asked.contracts),
        at=asked.at,
        record=asked.record,
    )
    return json_response(await run_in_threadpool(check))


async def get_schema_diff(request: Request) -> Response:
    """Return what differs between two versions of a schema: `?dataset=&old=&new=`."""
    numbers = {
        name: query_number(request, name, None, _MOST_VERSIONS)
        for name in ("old", "new")
        if name in request.query_params
    }
    diff = context_of(request).lineage.schemas.diff
    return json_response(await run_read(request, diff, query_text(request, "dataset"), **numbers))


async def post_schema_check(request: Request) -> Response:
    """Check a schema against the current one: `{"dataset": …, "schema": …, "format": "avro"}`."""
    asked = await read_struct(request, SchemaCheckRequest)
    lineage = context_of(request).lineage

    def check() -> SchemaCheck:
        declared = (
            None
            if asked.schema is None
            else parse_schema(
                asked.schema, _SUFFIXES[asked.format], "schema", message=asked.message
            )
        )
        return lineage.schemas.check(asked.dataset, mode=asked.mode, against=declared)

    return json_response(await run_read(request, check))


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/v1/contracts",
        get_contracts,
        KeyRole.READER,
        answers(ContractChecks, 400),
        query=("at",),
    ),
    Endpoint(
        "POST",
        "/v1/contracts",
        post_contracts,
        KeyRole.WRITER,
        answers(ContractChanges, *NAMED, 413, 503),
        body=ContractsRequest,
    ),
    Endpoint(
        "POST",
        "/v1/contracts/check",
        post_contract_check,
        KeyRole.WRITER,
        answers(ContractChecks, *NAMED, 413, 503),
        body=ContractCheckRequest,
    ),
    Endpoint(
        "GET",
        "/v1/schema-diff",
        get_schema_diff,
        KeyRole.READER,
        answers(SchemaDiff, *NAMED),
        query=("dataset", "old", "new"),
    ),
    Endpoint(
        "POST",
        "/v1/schema-check",
        post_schema_check,
        KeyRole.READER,
        answers(SchemaCheck, *NAMED, 413, 503),
        body=SchemaCheckRequest,
    ),
)
