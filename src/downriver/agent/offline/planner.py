"""`OfflinePlanner`: recognise the intent of a message, call the tool, and render the reply."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

from downriver.agent.grammar import parse_description
from downriver.agent.offline import replies
from downriver.agent.offline.intents import SQL, Intent, find_names, plain_words, read_intent
from downriver.agent.tools.entity_names import resolve_entity
from downriver.errors import DownriverError, EntityNotFoundError, InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from downriver.agent.toolbox import Toolbox
    from downriver.agent.tools.entity_names import NamedEntity

_LABEL = re.compile(
    r"^\s*(?P<label>proposed change|change description|description|entity(?: id)?|change type|type|"
    r"change)\s*:[ \t]*(?P<value>.*?)\s*$",
    re.IGNORECASE | re.MULTILINE,
)


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
  upstream, downstream       What feeds revenue_daily? What depends on raw_orders?
  paths                      How does raw_orders reach executive_kpis?
  columns                    How is orders_clean.amount_usd computed?
  changes                    What breaks if we rename orders_clean.customer_id to cust_id?
  gate requests              Entity: … / Change type: … / Proposed change: …
  incidents                  Why is revenue_daily wrong?
  diagrams                   Draw a Mermaid diagram of customer_360, upstream
  search                     Find tables with customer; What is customer_360?"""


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
        intent = read_intent(text)
        try:
            return await _Question(text, intent, toolbox, self).answer()
        except DownriverError as error:
            if intent.kind == "gate" or (self._gate and intent.kind == "impact"):
                return replies.render_undecided(error.message)
            return _error_reply(error)

    @property
    def decides(self) -> bool:
        """Whether questions about changes are answered with a decision."""
        return self._gate

    async def topic(self, text: str, toolbox: Toolbox, most: int = 1) -> list[NamedEntity]:
        """Return the entities of a question, or the entity of the last one."""
        found = await find_names(text, toolbox.context, most)
        if not found and self._topic is not None and re.search(r"\b(?:it|its|that|this)\b", text):
            found = [self._topic]
        if not found:
            await _suggest(text, toolbox)
        self._topic = found[0]
        return found


async def _suggest(text: str, toolbox: Toolbox) -> NoReturn:
    """Raise an error with similar names, for a question that names no known entity."""
    words = plain_words(text)
    for word in words:
        found = await toolbox.context.tracker.search_entities(word, 5)
        if found.entities:
            raise EntityNotFoundError(word, [entity.entity_id for entity in found.entities])
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
        return await _HANDLERS[self._intent.kind](self)

    async def _use(self, tool: str, **arguments: Any) -> Any:
        given = {name: value for name, value in arguments.items() if value is not None}
        return await self._toolbox.call(tool, given)

    async def _entity(self) -> NamedEntity:
        return (await self._planner.topic(self._text, self._toolbox))[0]

    async def help(self) -> str:
        return HELP

    async def unknown(self) -> str:
        message = " ".join(self._text.split())
        return f"I did not understand: {message}\n{HELP}"

    async def trace(self) -> str:
        named = await self._entity()
        if named.column and self._intent.direction == "upstream":
            return await self.column()
        entity = named.full_id
        sides = ["upstream", "downstream"]
        if self._intent.direction != "both":
            sides = [self._intent.direction]
        traces = [
            replies.render_trace(
                await self._use(f"trace_{side}", entity_id=entity, max_depth=self._intent.depth)
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
        )
        return replies.render_export(answer)

    async def impact(self) -> str:
        entity = await self._entity()
        decide = self._intent.decide or self._planner.decides
        arguments = {"entity_id": str(entity), "description": self._text}
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
        entity = await self._entity()
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
        column = entity.column or _column_in(self._text, entity)
        if column is None:
            return await self.incident()
        answer = await self._use("diagnose_metric", dataset=entity.entity_id, column=column)
        return replies.render_diagnosis(answer)

    async def paths(self) -> str:
        entities = await self._planner.topic(self._text, self._toolbox, most=2)
        if len(entities) < 2:
            raise InvalidRequestError("target", f"name the target too, not only {entities[0]}")
        source, target = entities
        if re.search(r"\bfrom\b.*\bto\b", self._text) is None and _is_backwards(self._text):
            source, target = target, source
        answer = await self._use("find_paths", source_id=str(source), target_id=str(target))
        return replies.render_paths(answer)

    async def column(self) -> str:
        entity = await self._entity()
        column = entity.column or _column_in(self._text, entity)
        if column is None:
            return await self.trace()
        answer = await self._use("get_column_lineage", dataset=entity.entity_id, column=column)
        return replies.render_columns(answer)

    async def search(self) -> str:
        wanted = _search_words(self._text)
        return replies.render_search(await self._use("search_entities", text=wanted), wanted)

    async def entity(self) -> str:
        entity = await self._entity()
        return replies.render_entity(await self._use("get_entity", entity_id=entity.entity_id))

    async def sql(self) -> str:
        statement = _statement_in(self._text)
        return replies.render_sql(await self._use("capture_sql_lineage", sql=statement))

    async def register(self) -> str:
        found = parse_description(self._text)
        if not found.flows and not found.not_understood:
            raise InvalidRequestError("description", "it contains no flow")
        arguments: dict[str, Any] = {"text": self._text}
        if not self._toolbox.allow_writes:
            arguments["dry_run"] = True
        reply = replies.render_description(await self._use("describe_pipeline", **arguments))
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
        "search": _Question.search,
        "entity": _Question.entity,
        "sql": _Question.sql,
        "register": _Question.register,
    },
)

_FORMATS = ("mermaid", "dot", "svg", "json", "csv", "cypher", "openlineage", "datahub")


def _format_in(text: str) -> str:
    for name in _FORMATS:
        if re.search(rf"\b{name}\b", text, re.IGNORECASE):
            return name
    return "dot" if re.search(r"\bgraphviz\b", text, re.IGNORECASE) else "mermaid"


def _column_in(text: str, entity: NamedEntity) -> str | None:
    """Return the column of a question: `the column c of t`, `c in t`."""
    found = re.search(
        r"\b(?:column|field)\s+[`\"']?(\w+)|[`\"']?(\w+)[`\"']?\s+(?:column|field)\b",
        text,
        re.IGNORECASE,
    )
    if found:
        return found[1] or found[2]
    short = re.escape(re.split(r"[:./]", entity.entity_id)[-1])
    placed = re.search(rf"(\w+)\s+(?:in|of|on)\s+(?:the\s+)?\S*{short}\b", text, re.IGNORECASE)
    return placed[1] if placed and placed[1] in plain_words(placed[1]) else None


def _is_backwards(text: str) -> bool:
    return bool(re.search(r"\b(?:fed by|come from|comes from|upstream of)\b", text, re.IGNORECASE))


_SEARCH_NOISE = re.compile(
    r"\b(?:please|find|search|for|list|look up|show|me|all|the|tables?|datasets?|jobs?|models?|any|"
    r"with|named|called|containing|that|contain|mention|match|about|in|their|names?|which|have|is|"
    r"there|an?|do|we|are|what|related|to|of)\b|[?.!,\"'`]",
    re.IGNORECASE,
)


def _search_words(text: str) -> str:
    return " ".join(_SEARCH_NOISE.sub(" ", text).split())


def _statement_in(text: str) -> str:
    """Return the SQL of a message: the fenced block, or the text from the first statement."""
    fenced = re.search(r"```(?:sql)?\s*\n(.*?)```", text, re.IGNORECASE | re.DOTALL)
    if fenced:
        return fenced[1].strip()
    found = SQL.search(text)
    return text[found.start() :].strip() if found else text.strip()
