"""`OfflinePlanner`: recognise the intent of a message, call the tool, and render the reply."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

from downriver.agent.grammar.limits import check_lines
from downriver.agent.grammar.typing_errors import correct
from downriver.agent.offline import replies
from downriver.agent.offline.intents import SQL, Intent, read_intent
from downriver.agent.offline.named_entities import find_names, plain_words
from downriver.agent.offline.time_references import AS_OF
from downriver.agent.tools.entity_names import known_names, resolve_entity
from downriver.errors import DownriverError, EntityNotFoundError, InvalidRequestError
from downriver.model.governance import PII_TAG

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from downriver.agent.toolbox import Toolbox
    from downriver.agent.tools.entity_names import NamedEntity

_LABEL = re.compile(
    r"^\s*(?P<label>proposed change|change description|description|entity(?: id)?|change type|type|"
    r"change)\s*:[ \t]*(?P<value>.*?)\s*$",
    re.IGNORECASE | re.MULTILINE,
)


_LONG_BLANK = re.compile(r"\s{100,}")


class GateMessage(NamedTuple):
    """The entity and change of a labelled request."""

    entity: str
    change_type: str
    description: str


def parse_gate_message(text: str) -> GateMessage | None:
    """Parse a labelled request (`Entity: …`); None if it names no entity."""
    values: dict[str, str] = {}
    for match in _LABEL.finditer(text):
        values.setdefault(_meaning(match["label"].lower()), match["value"].strip("`\"' "))
    if not values.get("entity"):
        return None
    return GateMessage(values["entity"], values.get("type", ""), values.get("description", ""))


def _meaning(label: str) -> str:
    if label.startswith("entity"):
        return "entity"
    return "type" if label.endswith("type") else "description"


HELP = """\
Without a model, I understand:
  pipeline descriptions      raw_orders is cleaned into orders_clean; a -> b -> c
  SQL statements             INSERT INTO orders_clean SELECT … FROM raw_orders
  upstream, downstream       What feeds revenue_daily? Who uses orders_clean.amount_usd?
  an earlier moment          What fed revenue_daily as of last week?
  paths                      How does raw_orders reach executive_kpis?
  two entities               What do revenue_daily and churn_scores share?
  columns                    How is orders_clean.amount_usd computed?
  changes                    What breaks if we rename orders_clean.customer_id to cust_id?
  gate requests              Entity: … / Change type: … / Proposed change: …
  incidents                  Why is revenue_daily wrong?
  diagrams                   Draw a Mermaid diagram of customer_360, upstream
  tags                       Where does PII go?
  search, details            Find tables with customer; When was customer_360 last updated?"""


class OfflinePlanner:
    """Answers with fixed rules. `it` in a question means the entity of the last question."""

    def __init__(self, *, gate: bool = False) -> None:
        self._gate = gate  # answer every question about a change with a decision
        self._topic: NamedEntity | None = None

    async def stream(self, text: str, toolbox: Toolbox) -> AsyncIterator[str]:
        """Yield the answer to a message, line by line."""
        for line in (await self.answer(text, toolbox)).splitlines(keepends=True):
            yield line

    async def answer(self, text: str, toolbox: Toolbox) -> str:
        """Return the answer to a message. Errors become part of the answer."""
        text = _LONG_BLANK.sub("\n", text)
        try:
            check_lines(text, "message")
        except InvalidRequestError as error:
            return _error_reply(error)
        # On a thread, because a long text takes seconds and a server has other requests.
        corrected = await asyncio.to_thread(correct, text)
        known = await known_names((c.written for c in corrected.corrections), toolbox.context)
        corrected = await asyncio.to_thread(correct, text, known.__contains__)
        intent = await asyncio.to_thread(read_intent, text, corrected.text, known)
        as_written = intent.kind in ("help", "gate", "sql", "register")
        message = text if as_written else corrected.text
        try:
            reply = await _Question(message, intent, toolbox, self).answer()
        except DownriverError as error:
            if intent.kind == "gate" or (self._gate and intent.kind == "impact"):
                return replies.render_undecided(error.message)
            toolbox.note_candidates(error)
            reply = _error_reply(error)
        return reply if as_written else replies.with_corrections(reply, corrected.corrections)

    @property
    def decides(self) -> bool:
        """Whether questions about changes are answered with a decision."""
        return self._gate

    async def topic(self, text: str, toolbox: Toolbox, *, strict: bool = True) -> list[NamedEntity]:
        """Return the entities of a question, or the entity of the last one.

        `strict`: an explicit name that no entity has is an error.
        """
        names = await find_names(text, toolbox.context)
        if names.unknown and (strict or not names.entities):
            raise names.unknown[0]
        named_entities = names.entities
        if (
            not named_entities
            and self._topic is not None
            and re.search(r"\b(?:it|its|that|this)\b", text)
        ):
            named_entities = [self._topic]
        if not named_entities:
            await _suggest(text, toolbox)
        self._topic = named_entities[0]
        return named_entities


async def _suggest(text: str, toolbox: Toolbox) -> NoReturn:
    """Raise an error with similar names, for a question that names no known entity."""
    words = plain_words(text)
    for word in words:
        answer = await toolbox.context.tracker.search_entities(word, 5)
        if answer.entities:
            raise EntityNotFoundError(word, [entity.entity_id for entity in answer.entities])
    if words:
        raise EntityNotFoundError(words[0])
    raise InvalidRequestError("entity", "name a dataset, as in table:orders")


def _error_reply(error: DownriverError) -> str:
    if isinstance(error, EntityNotFoundError):
        return f"Not found: {error.message}"
    return f"Cannot answer: {error.message}"


class _Question:
    """One message and the handlers of its intents."""

    def __init__(
        self, text: str, intent: Intent, toolbox: Toolbox, planner: OfflinePlanner
    ) -> None:
        self._text = text
        self._intent = intent
        self._toolbox = toolbox
        self._planner = planner

    async def answer(self) -> str:
        if self._intent.moment is None and AS_OF.search(self._text):
            raise InvalidRequestError("as of", "write the moment as 2026-01-31 or as last week")
        if AS_OF.search(self._text) and self._intent.kind not in ("trace", "diagram"):
            raise InvalidRequestError("as of", "only traces and diagrams show an earlier moment")
        return await _HANDLERS[self._intent.kind](self)

    async def _use(self, tool: str, **arguments: Any) -> Any:
        given = {name: value for name, value in arguments.items() if value is not None}
        return await self._toolbox.call(tool, given)

    async def _entity(self, *, strict: bool = True) -> NamedEntity:
        """Return the one entity of the question."""
        named_entities = await self._planner.topic(self._text, self._toolbox, strict=strict)
        if len(named_entities) > 1 and strict:
            names = " or ".join(str(entity) for entity in named_entities)
            raise InvalidRequestError("entity", f"which one do you mean: {names}?")
        return named_entities[0]

    async def help(self) -> str:
        return HELP

    async def unknown(self) -> str:
        message = " ".join(self._text.split())
        names = await find_names(self._text, self._toolbox.context)
        ask = "Write `help` for examples."
        if names.entities:
            ask = (
                f"Do you want the upstream, the downstream or the details of {names.entities[0]}, "
                "or the impact of a change?"
            )
        return f"I did not understand: {message}\n{ask}"

    async def trace(self) -> str:
        entities = await self._planner.topic(self._text, self._toolbox)
        if len(entities) == 2 and _YES_NO.search(self._text):
            source, target = entities
            if self._intent.direction == "upstream":
                source, target = target, source
            return await self._paths(source, target)
        return "\n\n".join([await self._trace(entity) for entity in entities])

    async def _trace(self, named: NamedEntity) -> str:
        intent = self._intent
        if named.column and intent.direction == "upstream" and intent.moment is None:
            return await self._column(named.entity_id, named.column)
        sides = ["upstream", "downstream"] if intent.direction == "both" else [intent.direction]
        traces = [
            replies.render_trace(
                await self._use(
                    f"trace_{side}",
                    entity_id=named.full_id,
                    max_depth=intent.depth,
                    as_of=intent.moment,
                )
            )
            for side in sides
        ]
        return "\n\n".join(traces)

    async def diagram(self) -> str:
        entity = await self._entity()
        answer = await self._use(
            "export_lineage",
            entity_id=entity.entity_id,
            format=_format_in(self._text),
            direction=self._intent.direction,
            max_depth=self._intent.depth,
            as_of=self._intent.moment,
        )
        return replies.render_export(answer)

    async def impact(self) -> str:
        text = self._text
        entity = await self._entity(strict=False)  # the new name of a column is unknown
        # `does it affect b if we drop a` changes a, and not a column of b.
        removal = _REMOVAL.search(text)
        if removal and not _is_named(entity, removal[1]):
            named = await self._planner.topic(text, self._toolbox)
            changed = next((other for other in named if _is_named(other, removal[1])), None)
            if changed is not None:
                entity, text = changed, text[removal.start() :]
        decide = self._intent.decide or self._planner.decides
        arguments = {"entity_id": str(entity), "description": text}
        if decide:
            return replies.render_gate(await self._use("gate_change", **arguments))
        return replies.render_impact(await self._use("analyze_impact", **arguments))

    async def gate(self) -> str:
        request = parse_gate_message(self._text)
        if request is None:
            raise InvalidRequestError("Entity", "name the entity that changes")
        answer = await self._use(
            "gate_change",
            entity_id=str(await resolve_entity(request.entity, self._toolbox.context)),
            change_type=request.change_type,
            description=request.description,
        )
        return replies.render_gate(answer)

    async def fix(self) -> str:
        entity = await self._entity(strict=False)
        answer = await self._use("suggest_fix", entity_id=str(entity), description=self._text)
        return replies.render_fix(answer)

    async def kpis(self) -> str:
        return replies.render_kpis(await self._use("kpis"))

    async def incident(self) -> str:
        entity = await self._entity()
        return replies.render_incident(await self._use("incident_report", entity_id=str(entity)))

    async def diagnose(self) -> str:
        """Diagnose a column; for a whole dataset, report the incident."""
        entity = await self._entity()
        if entity.column is None:
            return await self.incident()
        answer = await self._use("diagnose_metric", dataset=entity.entity_id, column=entity.column)
        return replies.render_diagnosis(answer)

    async def paths(self) -> str:
        entities = await self._planner.topic(self._text, self._toolbox)
        if len(entities) != 2:
            raise InvalidRequestError("paths", "name two entities: from which, and to which?")
        source, target = entities
        if re.search(r"\bfrom\b.*\bto\b", self._text) is None and _is_backwards(self._text):
            source, target = target, source
        return await self._paths(source, target)

    async def _paths(self, source: NamedEntity, target: NamedEntity) -> str:
        answer = await self._use("find_paths", source_id=str(source), target_id=str(target))
        return replies.render_paths(answer)

    async def shared(self) -> str:
        entities = await self._planner.topic(self._text, self._toolbox)
        if len(entities) != 2:
            raise InvalidRequestError("shared lineage", "which two entities do you mean?")
        one, other = entities
        answer = await self._use("shared_lineage", entity_id=one.full_id, other_id=other.full_id)
        return replies.render_shared(answer)

    async def tag(self) -> str:
        return replies.render_tag(await self._use("tag_reach", tag=PII_TAG))

    async def column(self) -> str:
        entity = await self._entity()
        if entity.column is None:
            return await self.trace()
        return await self._column(entity.entity_id, entity.column)

    async def _column(self, dataset: str, column: str) -> str:
        answer = await self._use("get_column_lineage", dataset=dataset, column=column)
        return replies.render_columns(answer)

    async def search(self) -> str:
        wanted = _search_words(self._text)
        return replies.render_search(await self._use("search_entities", text=wanted), wanted)

    async def entity(self) -> str:
        return await self._details("")

    async def freshness(self) -> str:
        return await self._details("last updated")

    async def certified(self) -> str:
        return await self._details("certified")

    async def owner(self) -> str:
        return await self._details("owners")

    async def columns(self) -> str:
        return await self._details("columns")

    async def _details(self, fact: str) -> str:
        entity = await self._entity()
        answer = await self._use("get_entity", entity_id=entity.entity_id)
        return replies.render_entity(answer, fact)

    async def sql(self) -> str:
        statement = _statement_in(self._text)
        return replies.render_sql(await self._use("capture_sql_lineage", sql=statement))

    async def register(self) -> str:
        arguments: dict[str, Any] = {"text": self._text}
        if not self._toolbox.allow_writes:
            arguments["dry_run"] = True
        answer = await self._use("describe_pipeline", **arguments)
        if not answer.flow_count and not answer.not_understood and not answer.refused:
            raise InvalidRequestError("description", "it contains no flow")
        reply = replies.render_description(answer)
        if self._toolbox.allow_writes:
            return reply
        return f"{reply}\nNothing was written: set allow_writes=True or --allow-writes."


_HANDLERS = cast(
    "dict[str, Callable[[_Question], Awaitable[str]]]",
    {
        "help": _Question.help,
        "unknown": _Question.unknown,
        "trace": _Question.trace,
        "diagram": _Question.diagram,
        "impact": _Question.impact,
        "gate": _Question.gate,
        "fix": _Question.fix,
        "kpis": _Question.kpis,
        "incident": _Question.incident,
        "diagnose": _Question.diagnose,
        "paths": _Question.paths,
        "column": _Question.column,
        "shared": _Question.shared,
        "tag": _Question.tag,
        "freshness": _Question.freshness,
        "certified": _Question.certified,
        "owner": _Question.owner,
        "columns": _Question.columns,
        "search": _Question.search,
        "entity": _Question.entity,
        "sql": _Question.sql,
        "register": _Question.register,
    },
)

_FORMATS = ("mermaid", "dot", "svg", "json", "csv", "cypher", "openlineage", "datahub", "atlas")


def _format_in(text: str) -> str:
    for name in _FORMATS:
        if re.search(rf"\b{name}\b", text, re.IGNORECASE):
            return name
    return "dot" if re.search(r"\bgraphviz\b", text, re.IGNORECASE) else "mermaid"


_YES_NO = re.compile(r"^\W*(?:\w+,\s*)?(?:do|does|did|is|are|was)\b", re.IGNORECASE)


_REMOVAL = re.compile(
    r"\b(?:drop|dropping|delete|deleting|remove|removing|rename|renaming|retire|retiring)\s+"
    r"(?:(?:the|our|table|view|model)\s+)*([\w.:/-]*\w)(?! (?:from|in|of|on)\b)",
    re.IGNORECASE,
)


def _is_named(entity: NamedEntity, name: str) -> bool:
    """Return whether a word of a message is the name of an entity, with or without its kind."""
    full, short = str(entity).casefold(), name.casefold()
    return full == short or full.endswith((f":{short}", f".{short}"))


def _is_backwards(text: str) -> bool:
    return bool(
        re.search(
            r"\b(?:(?:fed|affected|influenced|impacted|touched) by|comes? from|upstream of)\b",
            text,
            re.IGNORECASE,
        )
    )


_SEARCH_NOISE = re.compile(
    r"\b(?:please|find|search|for|list|look up|show|me|all|the|tables?|datasets?|jobs?|models?|any|"
    r"with|named|called|containing|that|contain|mention|match|about|in|their|names?|which|have|is|"
    r"there|an?|do|we|are|what|related|to|of|got|anything|has|having|whose|name|word)\b|[?.!,\"'`]",
    re.IGNORECASE,
)


def _search_words(text: str) -> str:
    return " ".join(_SEARCH_NOISE.sub(" ", text).split())


def _statement_in(text: str) -> str:
    """Return the SQL of a message: the fenced block, or the text from the first statement."""
    fenced = re.search(r"```(?:sql)?\s*\n(.*?)```", text, re.IGNORECASE | re.DOTALL)
    if fenced:
        return fenced[1].strip()
    match = SQL.search(text)
    return text[match.start() :].strip() if match else text.strip()
