"""An evidence pack as one HTML file that loads nothing and runs no script."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import msgspec

from downriver.model.control_characters import escape_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from downriver.govern.evidence.pack import EvidencePack

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1c2430; margin: 2rem auto; max-width: 72rem;
  padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #d7dde5; padding: .3rem .6rem .3rem 0; text-align: left;
  vertical-align: top; overflow-wrap: anywhere; }
th { font-weight: 600; color: #55606e; } .none { color: #55606e; }
.bad { color: #a3160f; font-weight: 600; } .good { color: #116329; }
.tag { background: #e8eef6; border-radius: .3rem; padding: 0 .4rem; margin-right: .3rem; }
.graph { overflow: auto; border: 1px solid #d7dde5; } code { overflow-wrap: anywhere; }
"""


def render_report(pack: EvidencePack, svg: str) -> str:
    """Return the page. `svg` is the picture of the graph."""
    name = _text(pack.dataset)
    sections = (
        ("Summary", _summary(pack)),
        ("Lineage", _lineage(pack, svg)),
        ("Columns", _columns(pack)),
        ("Freshness", _freshness(pack)),
        ("Quality", _quality(pack)),
        ("Findings", _findings(pack)),
        ("Runs", _runs(pack)),
        ("Schema history", _schemas(pack)),
        ("Contract history", _contracts(pack)),
        ("Waivers", _waivers(pack)),
    )
    body = "\n".join(f"<h2>{title}</h2>\n{content}" for title, content in sections)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>Evidence: {name}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>Evidence: {name}</h1>\n<p>as of {_text(pack.as_of)}</p>\n{body}\n</body>\n</html>\n"
    )


def _text(value: object) -> str:
    return "" if value is None else escape(escape_text(str(value)), quote=True)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], none: str) -> str:
    """Return a table; the cells of `rows` are HTML already."""
    listed = ["".join(f"<td>{cell}</td>" for cell in row) for row in rows]
    if not listed:
        return f'<p class="none">{_text(none)}</p>'
    head = "".join(f"<th>{_text(heading)}</th>" for heading in headings)
    body = "\n".join(f"<tr>{row}</tr>" for row in listed)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"


def _tags(tags: Iterable[str]) -> str:
    return "".join(f'<span class="tag">{_text(tag)}</span>' for tag in tags)


def _list(names: Iterable[str]) -> str:
    return "<br>".join(_text(name) for name in names)


def _outcome(success: bool, good: str, bad: str) -> str:
    return f'<span class="{"good" if success else "bad"}">{good if success else bad}</span>'


def _summary(pack: EvidencePack) -> str:
    rows = [
        ("dataset", _text(pack.dataset)),
        ("also named", _list(pack.aliases)),
        ("type", _text(pack.type)),
        ("description", _text(pack.description)),
        ("owners", _list(pack.owners)),
        ("tags", _tags(pack.tags)),
        ("version", f"<code>{_text(pack.version.id)}</code>"),
        ("schema first shown by event", f"<code>{_text(pack.version.schema_event)}</code>"),
        ("last completed run", f"<code>{_text(pack.version.last_run)}</code>"),
        ("created", f"{_text(pack.created_at)} by {_text(pack.created_by)}"),
        ("log", f"{pack.log.entries} entries, chain <code>{_text(pack.log.chain)}</code>"),
    ]
    return _table(("", ""), [(_text(label), value or "–") for label, value in rows], "")


def _lineage(pack: EvidencePack, svg: str) -> str:
    state = _outcome(pack.complete, "complete", "incomplete")
    spots = _table(
        ("kind", "entity", "blind spot"),
        [(_text(s.kind), _text(s.entity), _text(s.message)) for s in pack.blind_spots],
        "No blind spots.",
    )
    return f'<p>Lineage is {state}.</p>\n<div class="graph">{svg}</div>\n{spots}'


def _columns(pack: EvidencePack) -> str:
    rows = []
    for column in pack.columns:
        sources = [
            f"{_text(', '.join(d.input_columns) or '–')} "
            f"({_text(d.transformation)}, {_text(d.job)}, {_text(d.confidence)})"
            for d in column.derivations
        ]
        rows.append(
            (
                _text(column.name),
                _text(column.type),
                _tags(column.tags),
                "<br>".join(sources) or '<span class="none">unknown</span>',
                _text(column.description),
            )
        )
    headings = ("column", "type", "tags", "made of", "description")
    return _table(headings, rows, "No event contains a schema.")


def _freshness(pack: EvidencePack) -> str:
    rows = [
        (
            _text(entry.dataset),
            str(entry.depth),
            _text(entry.last_updated or "unknown"),
            _text(entry.age_hours),
        )
        for entry in pack.freshness
    ]
    return _table(("dataset", "depth", "last updated", "age in hours"), rows, "Nothing is known.")


def _quality(pack: EvidencePack) -> str:
    rows = [
        (
            _text(check.assertion),
            _text(check.column),
            _outcome(check.success, "passed", "failed"),
            _text(check.checked_at),
        )
        for check in pack.quality
    ]
    return _table(("check", "column", "result", "checked"), rows, "No results of checks.")


def _findings(pack: EvidencePack) -> str:
    rows = [
        (
            _text(finding.kind.value),
            _text(finding.severity.value),
            _text(finding.message),
            _text(finding.first_seen),
            _text(finding.status),
        )
        for finding in pack.findings
    ]
    headings = ("kind", "severity", "message", "first seen", "status")
    return _table(headings, rows, "The monitor recorded no findings.")


def _runs(pack: EvidencePack) -> str:
    rows = [
        (
            _text(run.job),
            f"<code>{_text(run.id)}</code>",
            _outcome(run.state == "COMPLETE", _text(run.state), _text(run.state)),
            _text(run.started_at),
            _text(run.ended_at),
            _text(run.rows_written),
            _text(run.error),
        )
        for run in pack.runs
    ]
    headings = ("job", "run", "state", "started", "ended", "rows", "error")
    return _table(headings, rows, "No runs.")


def _schemas(pack: EvidencePack) -> str:
    rows = [
        (
            _text(version.at),
            _text(", ".join(version.added)),
            _text(", ".join(version.removed)),
            _text(", ".join(f"{c.name}: {c.old} to {c.new}" for c in version.retyped)),
            f"<code>{_text(version.event)}</code>",
        )
        for version in pack.schema_history
    ]
    return _table(("from", "added", "removed", "retyped", "event"), rows, "No schema is known.")


def _contracts(pack: EvidencePack) -> str:
    rows = [
        (
            _text(version.first_seen),
            _text(version.last_seen),
            _text(version.entity),
            _text(version.facet),
            f"<code>{_text(msgspec.json.encode(version.content).decode())}</code>",
        )
        for version in pack.contract_history
    ]
    return _table(("from", "to", "entity", "facet", "contract"), rows, "No contract is known.")


def _waivers(pack: EvidencePack) -> str:
    rows = [
        (
            _text(waiver.at),
            _list(waiver.changes),
            f"<code>{_text(msgspec.json.encode(waiver.waived).decode())}</code>",
        )
        for waiver in pack.waivers
    ]
    return _table(("at", "changes", "waived"), rows, "No rule was waived.")
