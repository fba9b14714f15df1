"""Events as real producers send them, and the facts of each.

`DOWNRIVER_UPDATE_GOLDEN=1 pytest tests/unit/openlineage/test_golden.py` writes facts.json again.
Review the difference before you commit it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from downriver.model.facts import (
    ClaimSeen,
    Derivation,
    EdgeSeen,
    FacetRole,
    FacetSeen,
    Facts,
    NodeSeen,
)
from downriver.openlineage import fold, parse_event
from downriver.openlineage.facets.column_lineage import parse_derivations
from downriver.openlineage.facets.dataset import schema_columns
from downriver.openlineage.wire import render_time

CASES = sorted((Path(__file__).parents[2] / "golden" / "openlineage").iterdir())
UPDATE = os.environ.get("DOWNRIVER_UPDATE_GOLDEN") == "1"


def render_facts(facts: Facts) -> dict[str, Any]:
    """Return facts as a reader would list them, always in the same order."""
    seen = list(facts.sightings)
    facets = [sighting for sighting in seen if isinstance(sighting, FacetSeen)]
    return {
        "observed": all(span.observed for span in facts.sightings.values()),
        "at": sorted({render_time(span.last.at) for span in facts.sightings.values()}),
        "nodes": sorted(str(sighting.node) for sighting in seen if isinstance(sighting, NodeSeen)),
        "edges": sorted(render_edge(edge) for edge in seen if isinstance(edge, EdgeSeen)),
        "runs": {
            str(run): {
                "state": fact.state.name,
                "started_at": fact.started_at and render_time(fact.started_at),
            }
            for run, fact in facts.runs.items()
        },
        "columns": {
            str(facet.node): [
                f"{column.path} {column.type} {column.description}".strip()
                for column in schema_columns(facts.bodies[facet.digest])
            ]
            for facet in facets
            if facet.name == "schema" and facet.role is FacetRole.NODE
        },
        "derives": sorted(
            f"{render_derivation(derivation)} ({claim.facet} of {claim.job or claim.dataset})"
            for claim in seen
            if isinstance(claim, ClaimSeen)
            for derivation in parse_derivations(
                claim.facet, facts.bodies[claim.digest], claim.dataset
            )
        ),
        "facets": sorted(render_facet(facet) for facet in facets),
    }


def render_edge(edge: EdgeSeen) -> str:
    via = f" via {edge.via}" if edge.via else ""
    return f"{edge.kind.name} {edge.source} -> {edge.target}{via}"


def render_derivation(derivation: Derivation) -> str:
    how = "DIRECT" if derivation.direct else "INDIRECT"
    masking = "masking" if derivation.masking else ""
    said = [how, derivation.subtype, masking, derivation.description]
    return f"{derivation.source} -> {derivation.target}: {' '.join(filter(None, said))}"


def render_facet(facet: FacetSeen) -> str:
    match facet.role:
        case FacetRole.NODE:
            carrier = f"{facet.node}"
        case FacetRole.RUN:
            carrier = f"{facet.run}"
        case _:
            carrier = f"{facet.node} in {facet.run}"
    return f"{facet.role.name} {facet.name} of {carrier}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_event_folds_to_the_golden_facts(case: Path):
    facts = fold(parse_event((case / "event.json").read_bytes()))
    rendered = render_facts(facts)
    expected = case / "facts.json"
    if UPDATE:
        text = json.dumps(rendered, indent=2, ensure_ascii=False)
        expected.write_text(f"{text}\n", encoding="utf-8")
    assert rendered == json.loads(expected.read_text(encoding="utf-8"))


def test_the_cases_are_found():
    assert len(CASES) >= 12
