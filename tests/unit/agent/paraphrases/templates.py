"""Messages made from templates: synonyms, typing errors, voices, lists, arrows and styles of names.

The held-out set uses other words, other names and a few templates that the first set lacks.
"""

from __future__ import annotations

import random
import re
from typing import NamedTuple

from tests.unit.agent.paraphrases.scoring import ExpectedCall, Paraphrase, normal

FIRST, HELD_OUT, ALL = "first", "held out", "all"


class Template(NamedTuple):
    """A wording, and the flows or the call that it means."""

    text: str
    means: str
    used: str = ALL


# Names of a description: how they are written, and the name that is meant.
_STEMS = {
    FIRST: [
        "orders",
        "payments",
        "invoices",
        "shipments",
        "refunds",
        "carts",
        "visits",
        "leads",
        "stores",
        "campaigns",
        "risks",
        "events",
        "paths",
        "users",
    ],
    HELD_OUT: [
        "bookings",
        "tickets",
        "trips",
        "claims",
        "sensors",
        "policies",
        "wallets",
        "routes",
        "menus",
        "drivers",
    ],
}
_PREFIXES = ("raw", "stg", "int", "src", "tmp")
_SUFFIXES = ("clean", "daily", "hist", "enriched", "v2", "agg")
_STYLES = (
    "{p}_{s}", "{s}_{x}", "{p}_{s}_{x}", "{p}.{s}", "prod.{p}.{s}", "{P}.{S}_{X}", '"{S} {X}"',
    "`my-proj.{p}.{s}`", "[dbo].[{s}_{x}]", "{c}{X}", "s3://lake/{p}/{s}", "s3://lake/{p}/{s}/",
    "table:{p}_{s}", "`{s}_{x}`",
)  # fmt: skip

_WORDS = {
    FIRST: {
        "moved": "loaded copied ingested exported replicated synced written published moved dumped",
        "changed": "cleaned aggregated filtered deduplicated transformed parsed de-duplicated",
        "joined": "joined merged combined matched enriched stitched",
        "made": "built created derived computed assembled rebuilt",
        "moves": "loads copies ingests syncs exports",
        "changes": "transforms cleans aggregates parses",
        "move": "load copy ingest export",
        "feeds": "feeds populates updates drives fills",
        "tool": "dbt Fivetran Airflow Spark",
        "when": "hourly nightly daily",
    },
    HELD_OUT: {
        "moved": "pushed streamed imported archived shipped saved",
        "changed": "deduped enriched masked flattened rolled-up summarized cleansed",
        "joined": "blended unioned joined",
        "made": "generated produced populated calculated",
        "moves": "pulls streams replicates imports",
        "changes": "converts cleanses deduplicates summarizes",
        "move": "sync push import stream",
        "feeds": "powers refreshes feeds",
        "tool": "Airbyte Dagster Glue pyspark",
        "when": "weekly monthly hourly",
    },
}
_FRAMES = {
    FIRST: ("", "", "", "", "please register that ", "fyi ", "note that ", "hey, ", "also, "),
    HELD_OUT: ("", "", "", "hi, ", "for the record, ", "please note that ", "record that "),
}
_ENDS = ("", "", "", ".", " {when}", " every 15 minutes", " ({when})", " at 2am")

DESCRIPTIONS = (
    Template("{a} is {moved} into {b}", "a>b"),
    Template("{a} is {moved} to {b}", "a>b"),
    Template("{a} gets {changed} into {b}", "a>b"),
    Template("{a} is {changed} and {moved} into {b}", "a>b"),
    Template("{a} is {changed}, {changed} and {moved} to {b}", "a>b"),
    Template("{a} is {joined} with {c} into {b}", "a>b c>b"),
    Template("{a}, {c} and {d} are {joined} into {b}", "a>b c>b d>b"),
    Template("{a} and {c} are {joined} to form {b}", "a>b c>b"),
    Template("{b} is {made} from {a}", "a>b"),
    Template("{b} is {made} from {a} and {c}", "a>b c>b"),
    Template("{b} is {made} by joining {a} with {c}", "a>b c>b"),
    Template("{b} is {made} from {a}, {c} and {d}", "a>b c>b d>b"),
    Template("{tool} {moves} {a} into {b}", "a>b"),
    Template("{tool} {changes} {a} into {b}", "a>b"),
    Template("we {move} {a} into {b}", "a>b"),
    Template("{move} {a} into {b}", "a>b"),
    Template("{a} {feeds} {b}", "a>b"),
    Template("{a} {feeds} {b} and {c}", "a>b a>c"),
    Template("{a} {feeds} {b}, {c} and {d}", "a>b a>c a>d"),
    Template("{a} {feeds} both {b} and {c}", "a>b a>c"),
    Template("the {tool} job reads {a} and writes {b}", "a>b"),
    Template("the job reads {a} and {c} and writes to {b}", "a>b c>b"),
    Template("{b} reads from {a}", "a>b"),
    Template("{b} depends on {a} and {c}", "a>b c>b"),
    Template("{b} joins {a} and {c}", "a>b c>b"),
    Template("data flows from {a} to {b}", "a>b"),
    Template("add a flow from {a} to {b}", "a>b"),
    Template("{a} lands in {b}", "a>b"),
    Template("{a} -> {b}", "a>b"),
    Template("{a} -> {b} -> {c}", "a>b b>c"),
    Template("{a} --> {b}", "a>b"),
    Template("{a}, {c} => {b}", "a>b c>b"),
    Template("{b} <- {a}", "a>b"),
    Template("{a} → {b} → {c}", "a>b b>c"),
    Template("{a} -[dedupe]-> {b}", "a>b"),
    Template("{a} + {c} -> {b}", "a>b c>b"),
    Template("{a} is {changed} into {b}, which {feeds} {c}", "a>b b>c"),
    Template("{a} is {moved} into {b}, then {b} is {changed} into {c}", "a>b b>c"),
    Template("{a} is {moved} into {b} and {b} {feeds} {c}", "a>b b>c"),
    Template("{a} {feeds} {b} and add {c}", "a>b a>c"),
    Template("{a} is used to build {b}", "a>b"),
    Template("{tool} pulls {a}, cleans it and writes {b}", "a>b"),
    Template("{b} is powered by {a}", "a>b"),
    Template("{b} is a copy of {a}", "a>b"),
    Template("{b} gets its data from {a} and {c}", "a>b c>b"),
    Template("{a} and {c} go into {b}", "a>b c>b"),
    Template("{b} sits on top of {a}", "a>b"),
    Template("{a} is consumed by {b}", "a>b"),
    Template("{b} is a view on {a}", "a>b", HELD_OUT),
    Template("{b} is fed by {a} and {c}", "a>b c>b", HELD_OUT),
    Template("{tool} takes {a} and writes {b}", "a>b", HELD_OUT),
    Template("{b} comes from {a}", "a>b", HELD_OUT),
)
NO_FLOWS = (
    Template("{a} is not {moved} into {b}", "ask"),
    Template("{a} no longer {feeds} {b}", "ask"),
    Template("maybe {a} {feeds} {b}", "ask"),
    Template("{a} should be {moved} into {b}", "ask"),
    Template("if {a} is {changed} into {b} then tell me", "ask"),
    Template("we will probably {move} {a} into {b}", "ask", HELD_OUT),
)

# Entities of the warehouse, as they may be written in a question.
_KNOWN = {
    FIRST: ("revenue_daily", "orders_clean", "customer_360", "raw_orders", "DW.FCT_SALES"),
    HELD_OUT: (
        "customers_clean",
        "payments_usd",
        "executive_kpis",
        "raw_customers",
        "raw_payments",
    ),
}
_WRITTEN = {
    FIRST: ("{n}", "{n}", "{n}", "`{n}`", "table:{n}", "the {n} table", "table {n}"),
    HELD_OUT: ("{n}", "{n}", '"{n}"', "the table {n}", "our {n} table", "{n}"),
}
_COLUMNS = {
    FIRST: (
        ("orders_clean", "amount_usd"),
        ("orders_clean", "customer_id"),
        ("revenue_daily", "day"),
        ("raw_customers", "name"),
    ),
    HELD_OUT: (("customers_clean", "email"), ("customers_clean", "name")),
}
_PAIRS = {
    FIRST: (("raw_orders", "revenue_daily"), ("raw_payments", "executive_kpis")),
    HELD_OUT: (("raw_customers", "customer_360"), ("raw_orders", "churn_scores")),
}
_URL = "s3://lake/raw/events"

_UP, _DOWN = "trace_upstream entity_id={t}", "trace_downstream entity_id={t}"
_COLUMN_DOWN = "trace_downstream entity_id={tab}.{col}"
_COLUMN_UP = "get_column_lineage dataset={tab} column={col}"
_DROP, _DROP_COLUMN = "impact change=drop {t}", "impact change=drop {tab}.{col}"
_RENAME = "impact change=rename {tab}.{col} to new_name"
_DETAILS = "get_entity entity_id={t}"
_PATHS = "find_paths source_id={x} target_id={y}"
_SHARED = "shared_lineage entity_id={x} other_id={y}"
QUESTIONS = (
    Template("what feeds {n}", _UP),
    Template("where does {n} come from", _UP),
    Template("where does the data in {n} come from", _UP),
    Template("what is upstream of {n}", _UP),
    Template("show me the sources of {n}", _UP),
    Template("what does {n} depend on", _UP),
    Template("trace {n} back to its sources", _UP),
    Template("which tables feed into {n}", _UP),
    Template("what are the inputs of {n}", _UP, HELD_OUT),
    Template("origin of {n}", _UP, HELD_OUT),
    Template("what depends on {n}", _DOWN),
    Template("who uses {n}", _DOWN),
    Template("who is using {n}", _DOWN),
    Template("what is downstream of {n}", _DOWN),
    Template("which dashboards read {n}", _DOWN),
    Template("where does {n} go", _DOWN),
    Template("list the consumers of {n}", _DOWN),
    Template("what does {n} feed", _DOWN),
    Template("where is {n} used", _DOWN),
    Template("who reads from {n}", _DOWN, HELD_OUT),
    Template("what uses {n} downstream", _DOWN, HELD_OUT),
    Template("who are the users of {n}", _DOWN),
    Template("what reads {n} downstream", _DOWN),
    Template("what are the parents of {n}", _UP),
    Template("what fed {n} a month ago", f"{_UP} as_of=*"),
    Template("what is directly upstream of {n}", f"{_UP} max_depth=1"),
    Template("what depends on {n} within 2 hops", f"{_DOWN} max_depth=2"),
    Template("what feeds {n} as of last week", f"{_UP} as_of=*"),
    Template("what depended on {n} as of 2026-01-31", f"{_DOWN} as_of=2026-01-31*"),
    Template("what fed {n} two weeks ago", f"{_UP} as_of=*", HELD_OUT),
    Template("who uses column {col} of {tab}", _COLUMN_DOWN),
    Template("who uses {tab}.{col}", _COLUMN_DOWN),
    Template("what depends on the {col} column of {tab}", _COLUMN_DOWN),
    Template("which tables use {col} from {tab}", _COLUMN_DOWN),
    Template("who reads the field {col} in {tab}", _COLUMN_DOWN, HELD_OUT),
    Template("where does column {col} of {tab} come from", _COLUMN_UP),
    Template("how is {tab}.{col} computed", _COLUMN_UP),
    Template("how is {col} in {tab} calculated", _COLUMN_UP),
    Template("what breaks if we drop {n}", _DROP),
    Template("is it safe to drop {n}", _DROP),
    Template("is it ok to drop {n}", _DROP),
    Template("is it alright to remove {n}", _DROP),
    Template("is it fine to delete {n}", _DROP),
    Template("can I drop {n}", _DROP),
    Template("what happens if we delete {n}", _DROP),
    Template("what is the impact of dropping {n}", _DROP, HELD_OUT),
    Template("would dropping {n} break anything", _DROP),
    Template("is it ok to drop column {col} of {tab}", _DROP_COLUMN),
    Template("what breaks if I remove {tab}.{col}", _DROP_COLUMN),
    Template("can we drop the {col} column from {tab}", _DROP_COLUMN),
    Template("is it okay to rename {tab}.{col} to new_name", _RENAME),
    Template("what breaks if we rename {col} in {tab} to new_name", _RENAME),
    Template("would it break anything to rename {col} of {tab} to new_name", _RENAME, HELD_OUT),
    Template("when was {n} last updated", _DETAILS),
    Template("when did {n} last update", _DETAILS, HELD_OUT),
    Template("is {n} certified", _DETAILS),
    Template("who owns {n}", _DETAILS),
    Template("tell me about {n}", _DETAILS),
    Template("which columns does {n} have", _DETAILS),
    Template("where does PII go", "tag_reach tag=pii"),
    Template("which columns hold pii", "tag_reach tag=pii", HELD_OUT),
    Template("how does {x} reach {y}", _PATHS),
    Template("is there a path from {x} to {y}", _PATHS),
    Template("does {y} depend on {x}", _PATHS),
    Template("does {x} feed {y}", _PATHS, HELD_OUT),
    Template("what do {x} and {y} share", _SHARED),
    Template("what do {x} and {y} have in common", _SHARED),
    Template("draw a mermaid diagram of {n}", "export_lineage entity_id={t}"),
    Template("why is {n} wrong", "incident_report entity_id={t}"),
    Template("what reads {url}", f"trace_downstream entity_id={_URL}"),
    Template("what depends on {url}", f"trace_downstream entity_id={_URL}"),
)


def make_paraphrases(seed: int, *, held_out: bool = False, rounds: int = 3) -> list[Paraphrase]:
    """Return the messages of all templates, `rounds` of each: one of them with a typing error."""
    chance = random.Random(seed)
    used = HELD_OUT if held_out else FIRST
    made = []
    for turn in range(rounds):
        typo = turn == rounds - 1
        for template in (*DESCRIPTIONS, *NO_FLOWS):
            if template.used in (ALL, used):
                made.append(_describe(template, used, chance, typo=typo))
        for template in QUESTIONS:
            if template.used in (ALL, used):
                made.append(_question(template, used, chance, typo=typo))
    return made


def _describe(template: Template, used: str, chance: random.Random, *, typo: bool) -> Paraphrase:
    names = _names(used, chance)
    words = {kind: chance.choice(pool.split()) for kind, pool in _WORDS[used].items()}
    arrows = any(mark in template.text for mark in "<>→=")
    frame = "" if arrows or template.text.startswith(("add", "maybe", "if", "{move} ")) else None
    text = (chance.choice(_FRAMES[used]) if frame is None else "") + template.text
    text = _with_typo(text, chance) if typo and not arrows and template.means != "ask" else text
    text = (text + chance.choice(_ENDS)).format(**names, **words)
    if template.means == "ask":
        return Paraphrase(text, ask=True)
    flows = {
        tuple(normal(_plain(names[end])) for end in pair.split(">"))
        for pair in template.means.split()
    }
    return Paraphrase(text, flows={(source, target) for source, target in flows})


def _names(used: str, chance: random.Random) -> dict[str, str]:
    stems = chance.sample(_STEMS[used], 4)
    names = {}
    for letter, stem in zip("abcd", stems, strict=True):
        prefix, suffix = chance.choice(_PREFIXES), chance.choice(_SUFFIXES)
        names[letter] = chance.choice(_STYLES).format(
            p=prefix,
            s=stem,
            x=suffix,
            P=prefix.upper(),
            S=stem.capitalize(),
            X=suffix.capitalize(),
            c=stem,
        )
    return names


def _plain(name: str) -> str:
    """Return a name as it is stored: without quotes, brackets and a slash at the end."""
    return re.sub(r"[`\"\[\]]", "", name).rstrip("/")


def _question(template: Template, used: str, chance: random.Random, *, typo: bool) -> Paraphrase:
    known = chance.choice(_KNOWN[used])
    table, column = chance.choice(_COLUMNS[used])
    source, target = chance.choice(_PAIRS[used])
    text = _with_typo(template.text, chance) if typo else template.text
    ending = chance.choice(("?", "", " ?", "??", " please"))
    text = f"{text}{ending}".format(
        n=chance.choice(_WRITTEN[used]).format(n=known), col=column, tab=table, x=source, y=target,
        url=_URL + chance.choice(("", "/")),
    )  # fmt: skip
    if chance.random() < 0.3:
        text = text[0].upper() + text[1:]
    means = template.means.format(t=known, col=column, tab=table, x=source, y=target)
    tool, _, rest = means.partition(" ")
    pairs = re.findall(r"(\w+)=(.*?)(?=\s+\w+=|$)", rest)
    return Paraphrase(text, calls=[ExpectedCall(tool, dict(pairs))])


def _with_typo(text: str, chance: random.Random) -> str:
    """Return a text with one typing error in a word of at least four letters that is not a slot."""
    words = text.split(" ")
    at = [
        i
        for i, word in enumerate(words)
        if len(word) >= 4 and word.isalpha() and word != "new_name"
    ]
    if not at:
        return text
    place = chance.choice(at)
    word = words[place]
    i = chance.randrange(1, len(word) - 1)
    words[place] = chance.choice(
        (
            word[:i] + word[i + 1] + word[i] + word[i + 2 :],
            word[:i] + word[i + 1 :],
            word[:i] + word[i] + word[i:],
        )
    )
    return " ".join(words)
