"""The facet with the contract of a dataset. Only code that uses contracts imports this module."""

from __future__ import annotations

import msgspec

from downriver.model.trust.contracts import DataContract
from downriver.openlineage.facets.base import render_facet

CONTRACT = "downriver_contract"


def render_contract(contract: DataContract) -> msgspec.Raw:
    """Return the facet with the contract of a dataset."""
    return render_facet("DownriverContract", "1-0-0", **msgspec.to_builtins(contract))


def parse_contract_facet(body: bytes) -> DataContract | None:
    """Return the contract of a dataset, None if the facet is malformed."""
    try:
        return msgspec.json.decode(body, type=DataContract)
    except msgspec.DecodeError:
        return None
