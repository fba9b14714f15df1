"""Changes of a job's code: its SQL or source code differs from earlier runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from downriver.model.governance import Evidence, Finding, FindingKind, Severity
from downriver.openlineage.wire import render_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.model.ids import JobId
    from downriver.store.catalog.history import FacetVersion

CODE_FACETS = {"sql": "query", "sourceCode": "sourceCode"}  # facet: key of the text
_SHOWN = 120
_RUNS = 2  # with the earlier code
_WORD = re.compile(r"\S+")


class _CodeVersion(NamedTuple):
    text: str
    version: FacetVersion


def find_code_drift(
    job: JobId,
    facet: str,
    versions: Sequence[FacetVersion],
    begun: Sequence[int],
    settled_at: int,
) -> Iterator[Finding]:
    """Yield a finding if the code of a job changed and has not settled.

    `begun` are the start times of the job's runs. Code that differs in every run, such as SQL with
    a date in it, is no change.
    """
    known = _merge_versions([_CodeVersion(_text(each, facet), each) for each in versions])
    if len(known) < 2:
        return
    *before, now = sorted(known, key=lambda each: each.version.span.first.at)
    last = max(before, key=lambda each: each.version.span.last.at)
    began = now.version.span.first
    span = last.version.span
    runs = sum(span.first.at <= at <= span.last.at for at in begun)
    if runs < _RUNS or span.last.at >= began.at or began.at < settled_at:
        return
    removed, added = _difference(last.text, now.text)
    yield Finding(
        kind=FindingKind.CODE_CHANGED,
        entity=str(job),
        subject=facet,
        severity=Severity.INFO,
        message=f"the code changed: {removed!r} became {added!r}",
        first_seen=render_time(began.at),
        state=now.version.digest.hex()[:16],
        expected=removed,
        actual=added,
        evidence=[Evidence(event=began.digest.hex(), at=render_time(began.at), job=str(job))],
    )


def _text(version: FacetVersion, facet: str) -> str:
    """Return the code without differences of spaces and case."""
    try:
        body = msgspec.json.decode(version.body)
    except msgspec.DecodeError:
        return ""
    text = body.get(CODE_FACETS[facet]) if isinstance(body, dict) else None
    return " ".join(text.split()) if isinstance(text, str) else ""


def _merge_versions(versions: Sequence[_CodeVersion]) -> list[_CodeVersion]:
    """Return one version for each code; another facet body may have the same code."""
    code_versions: dict[str, _CodeVersion] = {}
    for text, version in versions:
        if not text:
            continue
        key = text.casefold()
        if key in code_versions:
            version = version._replace(span=code_versions[key].version.span.merge(version.span))
        code_versions[key] = _CodeVersion(text, version)
    return list(code_versions.values())


def _difference(one: str, other: str) -> tuple[str, str]:
    """Return the words in which two texts differ, from the first to the last difference."""
    words, others = _WORD.findall(one), _WORD.findall(other)
    start = 0
    while start < min(len(words), len(others)) and words[start] == others[start]:
        start += 1
    end = 0
    while end < min(len(words), len(others)) - start and words[-1 - end] == others[-1 - end]:
        end += 1
    removed = " ".join(words[start : len(words) - end])
    added = " ".join(others[start : len(others) - end])
    return removed[:_SHOWN], added[:_SHOWN]
