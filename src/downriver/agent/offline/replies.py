"""Tool answers rendered as text, with evidence and completeness."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from downriver.graph.names.short_names import ShortNames, find_full_ids

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.agent.grammar.typing_errors import Correction
    from downriver.agent.model_loop import PolicyDecision
    from downriver.agent.tools.change_impact import ChangeImpactAnswer, FixAnswer, GateAnswer
    from downriver.agent.tools.diagnostics import (
        DiagnoseAnswer,
        IncidentAnswer,
        KpisAnswer,
        TagAnswer,
    )
    from downriver.agent.tools.queries import (
        ColumnAnswer,
        DiagramAnswer,
        EntityAnswer,
        RoutesAnswer,
        SearchAnswer,
        SharedAnswer,
        TraceAnswer,
    )
    from downriver.agent.tools.registration import DescriptionAnswer, SqlAnswer
    from downriver.agent.tools.tool import ToolAnswer
    from downriver.model.flows import Related

_SPOTS_SHOWN = 3
_NAMES_SHOWN = 12


def render_trace(answer: TraceAnswer) -> str:
    """Render the upstream or downstream of an entity as a tree."""
    up = answer.direction == "upstream"
    when = f" as of {answer.as_of}" if answer.as_of else ""
    if not answer.total:
        side = "upstream" if up else "downstream"
        return _lines(f"{answer.entity_id} has no known {side}{when}.", *_completeness(answer))
    kinds = _count_entities(answer)
    lines = [f"{'Upstream' if up else 'Downstream'} of {answer.entity_id}{when}: {kinds}."]
    lines += _tree(answer.entities)
    if answer.next_cursor:
        lines.append(f"  … {answer.total - len(answer.entities)} more")
    if answer.ends:
        label = "Original sources" if up else "Final consumers"
        lines.append(f"{label}: {_list_names(answer.ends, answer.end_count)}.")
    return _lines(*lines, *_completeness(answer))


def _tree(entities: Sequence[Related]) -> list[str]:
    """Return a line for each entity, below its parent; the other parents are named in brackets."""
    names = {entity.id: entity.entity_id for entity in entities}
    depths = {entity.id: entity.depth for entity in entities}
    children: dict[str, list[Related]] = {}
    others: dict[str, list[str]] = {}
    for entity in entities:
        near = [p for p in entity.parents if depths.get(p, entity.depth) < entity.depth]
        children.setdefault(near[0] if near else "", []).append(entity)
        others[entity.id] = [names[p] for p in entity.parents if p in names and p not in near[:1]]
    lines: list[str] = []
    waiting = [(entity, 1) for entity in reversed(children.get("", []))]
    while waiting:
        entity, level = waiting.pop()
        also = f" (also under {', '.join(others[entity.id])})" if others[entity.id] else ""
        lines.append(f"{'  ' * min(level, 8)}{_related(entity)}{also}")
        waiting += [(child, level + 1) for child in reversed(children.get(entity.id, []))]
    return lines


def _related(entity: Related) -> str:
    how = f" — {entity.transformation}" if entity.transformation else ""
    when = f" ({entity.schedule})" if entity.schedule else ""
    stale = " [stale]" if entity.status == "stale" else ""
    return f"{entity.entity_id}{how}{when}{stale}"


def _count_entities(answer: TraceAnswer) -> str:
    kinds = Counter(entity.kind for entity in answer.entities)
    most = kinds.most_common(1)[0][0]
    kinds[most] += answer.total - len(answer.entities)  # those on other pages
    parts = [_plural(count, kind) for kind, count in kinds.items()]
    return f"{' and '.join(parts)}, up to {_plural(answer.deepest, 'step')} away"


def render_impact(answer: ChangeImpactAnswer) -> str:
    """Render the consumers affected by a change, most severe first."""
    lines = [
        f"{'; '.join(answer.changes).capitalize()}: risk {answer.risk_level}, "
        f"{_plural(answer.total_affected_count, 'system')} affected "
        f"({answer.directly_affected_count} directly), {answer.untouched_count} not affected."
    ]
    lines += [
        f"  {e.severity}: {e.name} ({e.type}) — {e.reason}{_owners(e.owners)}"
        for e in answer.affected_entities
    ]
    if answer.next_cursor:
        rest = answer.total_affected_count - len(answer.affected_entities)
        lines.append(f"  … {rest} more")
    lines += [f"{answer.verdict}: {answer.reason}", f"Recommendation: {answer.recommendation}"]
    if answer.note:
        lines.append(f"Note: {answer.note}.")
    return _lines(*lines, *_completeness(answer))


def render_gate(answer: GateAnswer) -> str:
    """Render the decision of the policy, with labels that scripts can search for."""
    lines = [
        f"DECISION: {answer.decision}",
        f"RISK: {answer.risk}",
        f"AFFECTED SYSTEMS: {answer.affected_systems}",
        f"REASON: {answer.reason}",
        f"RECOMMENDATION: {answer.recommendation}",
    ]
    if answer.affected:
        lines.append(f"AFFECTED: {_list_names(answer.affected, answer.affected_systems)}")
    if answer.ask:
        lines.append(f"OWNERS TO ASK: {', '.join(answer.ask)}")
    if answer.note:
        lines.append(f"NOTE: {answer.note}")
    return _lines(*lines, *_completeness(answer))


def render_decision(decision: PolicyDecision) -> str:
    """Render a decision without details."""
    return _lines(
        f"DECISION: {decision.decision}",
        f"RISK: {decision.risk}",
        f"AFFECTED SYSTEMS: {decision.affected}",
    )


def render_kpis(answer: KpisAnswer) -> str:
    """Render the KPIs of the graph."""
    k = answer.kpis
    shares = (
        ("lineage coverage", k.lineage_coverage), ("upstream known", k.upstream_coverage),
        ("column lineage", k.column_coverage), ("schemas", k.schema_coverage),
        ("owners", k.owner_coverage), ("documentation", k.documentation_coverage),
        ("stale edges", k.stale_edges), ("failed runs", k.failure_rate), ("on time", k.on_time),
    )  # fmt: skip
    lines = [f"{_plural(k.datasets, 'dataset')}, {_plural(k.jobs, 'job')} at {k.at}."]
    lines += [
        f"  {label}: {share.percent} % ({share.count} of {share.total})"
        for label, share in shares
        if share.percent is not None
    ]
    lines.append(
        f"  blast radius: median {k.blast_radius.median}, at most {k.blast_radius.largest}"
    )
    listed = (("orphans", k.orphans), ("failing jobs", k.failing_jobs), ("late jobs", k.late_jobs))
    lines += [
        f"  {label}: {count.count} ({_list_names(count.examples, count.count)})"
        for label, count in listed
        if count.count
    ]
    return _lines(*lines)


def render_incident(answer: IncidentAnswer) -> str:
    """Render an incident: status, suspects and affected consumers."""
    since = f" since {answer.since}" if answer.since else ""
    lines = [f"{answer.entity} is {answer.status}{since}: {answer.summary}"]
    lines += [f"  failure: {message}" for message in answer.failures]
    lines += [f"Suspects upstream: {answer.suspect_count}."] if answer.suspects else []
    for suspect in answer.suspects:
        why = "; ".join(suspect.reasons)
        lines.append(f"  {suspect.id} (score {suspect.score}): {why}{_owners(suspect.owners)}")
    if answer.affected:
        label = "Downstream" if answer.status == "healthy" else "Affected"
        lines.append(f"{label}: {_list_names(answer.affected, answer.affected_count)}.")
    if answer.owners_to_tell:
        lines.append(f"Notify: {', '.join(answer.owners_to_tell)}.")
    return _lines(*lines, *_completeness(answer))


def render_diagnosis(answer: DiagnoseAnswer) -> str:
    """Render the derivation of a metric, the freshness of its sources, and suspects."""
    sources = ", ".join(answer.direct_sources) or "no known column"
    lines = [f"{answer.metric} is derived from {sources}."]
    lines += [f"  {how}" for how in answer.transformations]
    lines += [f"Look first at {s.entity}: {s.reason}" for s in answer.look_first]
    lines += [
        f"  {freshness.source}: last updated {freshness.last_updated or 'unknown'}"
        for freshness in answer.freshness
    ]
    lines += [
        f"  failed: {run.job} at {run.ended_at or run.started_at}: {run.error or 'no reason given'}"
        for run in answer.recent_failures
    ]
    if not answer.look_first:
        lines.append("No upstream job failed or is late, and no check failed.")
    return _lines(*lines, *_completeness(answer))


def render_undecided(reason: str) -> str:
    """Render a BLOCKED decision for a change that could not be assessed."""
    return _lines(
        "DECISION: BLOCKED",
        "RISK: HIGH",
        "AFFECTED SYSTEMS: unknown",
        f"REASON: cannot decide: {reason}",
        "RECOMMENDATION: Check the name, or register its readers and writers, and ask again.",
    )


def render_fix(answer: FixAnswer) -> str:
    """Render the patch and the plan of a change."""
    lines = [f"For: {'; '.join(answer.changes)}."]
    lines += [f"  {n}. {step}" for n, step in enumerate(answer.plan, 1)]
    if answer.diff:
        state = "verified by simulation" if answer.verified else "does not fix everything"
        lines += [f"The patch ({state}):", "```diff", answer.diff.rstrip(), "```"]
    if answer.next_cursor:
        size = f"{answer.diff_characters} characters"
        lines.append(f"… the patch has {size}; run `downriver fix` for all of it")
    lines += [f"Needs a decision: {item}" for item in answer.left_to_people]
    if answer.left_count > len(answer.left_to_people):
        lines.append(f"Needs a decision: {answer.left_count - len(answer.left_to_people)} more")
    if answer.remaining:
        remaining = _list_names(answer.remaining, answer.remaining_count)
        lines.append(f"Still affected after the patch: {remaining}")
    return _lines(*lines)


def render_export(answer: DiagramAnswer) -> str:
    """Render a diagram in a fenced block, with its completeness."""
    lines = [f"```{answer.format}", answer.text.rstrip(), "```"]
    if answer.next_cursor:
        lines.append(f"… part of {answer.total_characters} characters; ask for less depth")
    counts = f"{_plural(answer.node_count, 'node')}, {_plural(answer.edge_count, 'edge')}"
    return _lines(*lines, f"{counts}.", *_completeness(answer))


def render_paths(answer: RoutesAnswer) -> str:
    """Render the paths from one entity to another."""
    if not answer.paths:
        message = f"No known path from {answer.source_id} to {answer.target_id}."
        return _lines(message, *_completeness(answer))
    count = _plural(answer.path_count, "path")
    lines = [f"{count} from {answer.source_id} to {answer.target_id}:"]
    lines += [f"  {' → '.join(path)}" for path in answer.paths]
    return _lines(*lines, *_completeness(answer))


def render_shared(answer: SharedAnswer) -> str:
    """Render what two entities share."""
    lines = [f"Shared by {answer.entity_id} and {answer.other_id}:"]
    sides = (
        ("upstream of both", answer.upstream, answer.upstream_count),
        ("downstream of both", answer.downstream, answer.downstream_count),
    )
    for label, names, count in sides:
        lines.append(f"  {label}: {_list_names(names, count) if count else 'none known'}")
    return _lines(*lines, *_completeness(answer))


def render_tag(answer: TagAnswer) -> str:
    """Render where a tag is set, and the columns that it reaches."""
    if not answer.tagged_count:
        return _lines(f"Nothing has the tag {answer.tag!r}.", *_completeness(answer))
    lines = [f"{answer.tag} is set on {_list_names(answer.tagged, answer.tagged_count)}."]
    reached = (
        _list_names(answer.reached, answer.reached_count) if answer.reached_count else "no column"
    )
    lines.append(f"It reaches {reached}.")
    if answer.masked_count:
        lines.append(f"It is masked before {_list_names(answer.masked, answer.masked_count)}.")
    return _lines(*lines, *_completeness(answer))


def render_columns(answer: ColumnAnswer) -> str:
    """Render the derivations of a column."""
    place = f"{answer.dataset}.{answer.column}"
    if not answer.derivations:
        return f"{place} has no known column lineage: it is a source, or its job reported none."
    lines = [f"{place} has {_plural(answer.total, 'derivation')}:"]
    for derivation in answer.derivations:
        inputs = ", ".join(derivation.input_columns) or "no column (a constant)"
        by = f" by {derivation.job}" if derivation.job else ""
        how = f"{derivation.transformation or 'unknown'}, {derivation.confidence}"
        lines.append(f"  from {inputs}{by} ({how})")
        if derivation.indirect_columns:
            lines.append(f"    depending on {', '.join(derivation.indirect_columns)}")
    return _lines(*lines)


def render_search(answer: SearchAnswer, text: str) -> str:
    """Render the entities of a search."""
    if not answer.total:
        return f"No name contains {text!r}." if text else "The graph is empty."
    suffix = f" with {text!r} in the name" if text else ""
    lines = [f"{_plural(answer.total, 'entity')}{suffix}:"]
    lines += [f"  {e.entity_id} ({e.type})" for e in answer.entities]
    if answer.next_cursor:
        lines.append(f"  … {answer.total - len(answer.entities)} more")
    return _lines(*lines)


def render_entity(answer: EntityAnswer, fact: str = "") -> str:
    """Render the details of an entity, or one `fact` of them."""
    header = f"{answer.entity_id} is a {answer.type} in {answer.namespace}."
    facts = dict(_facts(answer))
    if fact:
        return _lines(header, f"  {fact}: {facts.get(fact, 'unknown')}", *_completeness(answer))
    lines = [header, *([f"  {answer.description}"] if answer.description else ())]
    lines += [f"  {label}: {value}" for label, value in facts.items()]
    lines += [f"  last run of {r.job}: {r.state} {r.ended_at or ''}" for r in answer.last_runs[:3]]
    lines.append(f"  seen from {answer.first_seen} to {answer.last_seen}")
    return _lines(*lines, *_completeness(answer))


def _facts(answer: EntityAnswer) -> Iterator[tuple[str, str]]:
    lists = (
        ("owners", answer.owners, len(answer.owners)),
        ("tags", answer.tags, len(answer.tags)),
        ("columns", [c.name for c in answer.columns], answer.column_count),
        ("fed by", [e.entity_id for e in answer.upstream], answer.upstream_count),
        ("feeds", [e.entity_id for e in answer.downstream], answer.downstream_count),
    )
    yield from ((label, _list_names(names, count)) for label, names, count in lists if names)
    if answer.kind == "dataset":
        yield "certified", "yes" if answer.certified else "no"
        yield "last updated", answer.last_updated or "unknown, because no known run writes it"


def with_corrections(reply: str, corrections: Sequence[Correction]) -> str:
    """Add the words that were read as others."""
    if not corrections:
        return reply
    read = ", ".join(f"{c.written!r} as {c.meant!r}" for c in dict.fromkeys(corrections))
    return _lines(reply, f"Read {read}.")


def render_description(answer: DescriptionAnswer) -> str:
    """Render the registered flows, and every line that was not understood."""
    verb = "Registered" if answer.registered else "Would register"
    lines = [f"{verb} {_plural(answer.flow_count, 'flow')}."]
    for pipeline in answer.pipelines:
        if pipeline.name:
            when = f" ({pipeline.schedule})" if pipeline.schedule else ""
            lines.append(f"{pipeline.name}{when}")
        for flow in pipeline.flows:
            when = f", {flow.schedule}" if flow.schedule else ""
            how = f"{flow.transformation}{when}; confidence {flow.confidence}"
            lines.append(f"  {flow.source} → {flow.target} — {how}")
            lines += [f"    (similar known name: {near})" for near in flow.near]
    if answer.omitted_flow_count:
        lines.append(f"  … {answer.omitted_flow_count} more")
    if answer.refused:
        lines += ["Not registered, because a name is ambiguous:"]
        lines += [f"  {problem}" for problem in answer.refused]
    if answer.not_understood:
        lines += ["Not understood; please rephrase:"]
        lines += [f"  line {x.number}: {x.text} — {x.problem}" for x in answer.not_understood]
    return with_corrections(_lines(*lines), answer.corrections)


def render_sql(answer: SqlAnswer) -> str:
    """Render the inputs, outputs and column edges of a statement."""
    reads, writes = ", ".join(answer.source_tables), ", ".join(answer.target_tables)
    lines = [f"Captured: {reads or 'nothing read'} → {writes or 'nothing written'}."]
    if answer.column_count:
        lines.append(f"  {_plural(answer.column_count, 'column edge')}:")
        lines += [f"    {edge}" for edge in answer.columns[:_NAMES_SHOWN]]
        if answer.column_count > _NAMES_SHOWN:
            lines.append(f"    … {answer.column_count - _NAMES_SHOWN} more")
    lines += [f"  ? {spot}" for spot in answer.blind_spots]
    return _lines(*lines)


def _completeness(answer: ToolAnswer) -> Iterator[str]:
    """Yield the completeness of an answer and its first blind spots."""
    if answer.complete:
        yield "Complete: no blind spots."
        return
    yield f"Not complete: {_plural(answer.blind_spot_count, 'blind spot')}."
    spots = [f"{spot.entity}: {spot.message}" for spot in answer.blind_spots[:_SPOTS_SHOWN]]
    names = ShortNames.of_ids(full_id for spot in spots for full_id in find_full_ids(spot))
    for spot in spots:
        yield f"  ? {names.replace_in(spot)}"
    if answer.blind_spot_count > _SPOTS_SHOWN:
        yield f"  ? and {answer.blind_spot_count - _SPOTS_SHOWN} more"


def _owners(owners: Sequence[str]) -> str:
    return f" [{', '.join(owners)}]" if owners else ""


def _list_names(names: Sequence[str], total: int) -> str:
    shown = ", ".join(names[:_NAMES_SHOWN])
    more = total - min(len(names), _NAMES_SHOWN)
    return f"{shown} and {more} more" if more > 0 else shown


def _plural(count: int, noun: str) -> str:
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun[:-1]}ies" if noun.endswith("ty") else f"{count} {noun}s"


def _lines(*lines: str) -> str:
    return "\n".join(lines)
