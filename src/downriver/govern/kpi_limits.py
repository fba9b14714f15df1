"""KPIs as gates: limits such as `coverage=95`, the badge, and metrics for Prometheus."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, NamedTuple

from downriver.errors import InvalidRequestError
from downriver.model.governance import BlastRadius, CountWithExamples, Kpis, Share
from downriver.model.verdicts import ChangeBlastRadius

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

COVERAGE = "coverage"  # of the inventories if there are any, else `lineage_coverage`
_OF_TAGS = {"tag_columns": "columns", "tag_reach": "reached"}  # KPIs of each propagating tag
_ALIASES = {"integrity": "certified_path_integrity"}
# The entities that a share leaves out.
_REST = {
    COVERAGE: "without_edges",
    "lineage_coverage": "without_edges",
    "upstream_coverage": "without_source",
    "column_coverage": "columns_without_source",
    "schema_coverage": "without_schema",
    "owner_coverage": "without_owner",
    "documentation_coverage": "without_description",
    "certified_path_integrity": "certified_with_gaps",
    "on_time": "late_jobs",
}


class KpiLimit(NamedTuple):
    """A bound of a KPI: the percent of a share, or a number.

    `tag_reach:gdpr` is the KPI of one tag.
    """

    name: str
    number: float
    is_lowest: bool


def parse_limits(fail_under: Iterable[str], fail_over: Iterable[str]) -> list[KpiLimit]:
    """Parse limits such as `coverage=95`."""
    return [
        *(_parse_limit(text, "--fail-under", is_lowest=True) for text in fail_under),
        *(_parse_limit(text, "--fail-over", is_lowest=False) for text in fail_over),
    ]


def _parse_limit(text: str, option: str, *, is_lowest: bool) -> KpiLimit:
    written, _, number = text.partition("=")
    name = _normalized(written)
    if name not in KPI_NAMES and name.partition(":")[0] not in _OF_TAGS:
        raise InvalidRequestError(option, f"{name!r} is not one of {', '.join(KPI_NAMES)}")
    try:
        bound = float(number.strip().removesuffix("%"))
    except ValueError as exc:
        raise InvalidRequestError(option, f"{text!r} is not KPI=NUMBER") from exc
    if not math.isfinite(bound):  # every KPI would be within it
        raise InvalidRequestError(option, f"{text!r} is not KPI=NUMBER")
    # Nearly every share is above 1 percent, so a number such as 0.95 is meant as a part of 1.
    if is_lowest and 0 < bound <= 1 and name in _SHARES and "%" not in number:
        raise InvalidRequestError(option, f"{text!r}: {name} is in percent: write 95, not 0.95")
    return KpiLimit(name, bound, is_lowest)


def _normalized(name: str) -> str:
    name = name.strip().lower().replace("-", "_")
    return _ALIASES.get(name, name)


def find_list(figures: Kpis, written: str, option: str) -> CountWithExamples:
    """Return the entities that a KPI counts, or that a share leaves out."""
    name = _normalized(written)
    of_tag, _, tag = name.partition(":")
    for each in figures.propagating_tags:
        if of_tag in _OF_TAGS and each.tag == tag:
            found: CountWithExamples = getattr(each, _OF_TAGS[of_tag])
            return found
    listed = getattr(figures, _REST.get(name, name), None)
    if not isinstance(listed, CountWithExamples):
        raise InvalidRequestError(option, f"{written!r} is not one of {', '.join(LISTED_KPIS)}")
    return listed


def check_limits(figures: Kpis, limits: Sequence[KpiLimit]) -> list[str]:
    """Return a sentence for each KPI beyond its limit. A KPI without a value is beyond it."""
    violations = []
    for limit in limits:
        value = find_value(figures, limit.name)
        if value is None:
            violations.append(f"{limit.name} has no value: there is nothing to count")
        elif limit.is_lowest and value < limit.number:
            violations.append(f"{limit.name} is {value:g}, below {limit.number:g}")
        elif not limit.is_lowest and value > limit.number:
            violations.append(f"{limit.name} is {value:g}, above {limit.number:g}")
    return violations


def find_value(figures: Kpis, name: str) -> float | None:
    """Return a KPI as a number: the percent of a share, a count, or a median."""
    if name == COVERAGE:
        shares = [found.coverage for found in figures.inventories] or [figures.lineage_coverage]
        return min((s.percent for s in shares if s.percent is not None), default=None)
    of_tag, _, tag = name.partition(":")
    if of_tag in _OF_TAGS:
        counts = {each.tag: getattr(each, _OF_TAGS[of_tag]) for each in figures.propagating_tags}
        return counts[tag].count if tag in counts else None
    match getattr(figures, name):
        case Share(percent=percent):
            return percent
        case CountWithExamples(count=count):
            return count
        case BlastRadius(median=median) | ChangeBlastRadius(median=median):
            return median
        case number:
            return float(number)


KPI_NAMES = (
    COVERAGE,
    *(
        field
        for field, kind in Kpis.__annotations__.items()
        if kind in ("Share", "CountWithExamples", "BlastRadius", "ChangeBlastRadius", "int")
    ),
)

_SHARES = frozenset({COVERAGE, *(f for f, kind in Kpis.__annotations__.items() if kind == "Share")})
LISTED_KPIS = (
    *_REST,
    *(field for field, kind in Kpis.__annotations__.items() if kind == "CountWithExamples"),
)

_CHAR_WIDTH = 7
_COLOURS = ((95.0, "#3a7d34"), (80.0, "#8a6d00"), (0.0, "#b3261e"))


def render_badge(figures: Kpis) -> str:
    """Return lineage coverage as an SVG badge."""
    value = find_value(figures, COVERAGE)
    label, text = "lineage", "unknown" if value is None else f"{value:g}%"
    colour = next((c for least, c in _COLOURS if value is not None and value >= least), "#5f6368")
    left, right = (len(part) * _CHAR_WIDTH + 12 for part in (label, text))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{label}: {text}"><title>{label}: {text}</title>'
        f'<rect width="{left}" height="20" fill="#444"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{colour}"/>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,sans-serif" font-size="11">'
        f'<text x="{left / 2:g}" y="14">{label}</text>'
        f'<text x="{left + right / 2:g}" y="14">{text}</text></g></svg>\n'
    )


def list_values(figures: Kpis) -> list[tuple[str, float]]:
    """Return the KPIs that have a value, with their names."""
    of_tags = [f"{name}:{each.tag}" for each in figures.propagating_tags for name in _OF_TAGS]
    values = ((name, find_value(figures, name)) for name in (*KPI_NAMES, *of_tags))
    return [(name, value) for name, value in values if value is not None]


def render_prometheus(figures: Kpis) -> str:
    """Return the KPIs in the text format of Prometheus. A KPI without a value is left out."""
    lines = ["# HELP downriver_kpi KPIs: percent, count or median.", "# TYPE downriver_kpi gauge"]
    lines += [
        f"downriver_kpi{{name={json.dumps(name)}}} {value:g}"
        for name, value in list_values(figures)
    ]
    return "".join(f"{line}\n" for line in lines)
