"""The verbs of the grammar, by what they say about subject and object.

Only base forms are listed; `land` gives lands, landed and landing.
"""

from __future__ import annotations

import re

from downriver.agent.grammar.words import word_set

# Moves data as it is: `S loads … into T`.
_MOVE = """load copy pull extract ingest stream write send push export dump publish sync replicate
    import move deliver emit output save store append insert upsert land feed ship transfer migrate
    mirror backfill unload upload fetch collect pipe forward drop offload propagate capture persist
    materialize materialise snapshot archive flow go stage put post drain end sink route bring
    funnel relay syndicate hand pass arrive download trickle"""
# Makes other data of it: `S is cleaned into T`, `dbt joins A with B into T`.
_CHANGE = """clean cleanse dedupe deduplicate join merge combine union aggregate summarize summarise
    transform convert normalize normalise filter enrich parse roll pivot sessionize mask anonymize
    anonymise validate standardize standardise flatten score group bucket sample split blend cast
    map hash tokenize compute calculate reshape partition sort rank denormalize reconcile process
    refine curate unify conform explode unnest featurize encode geocode resolve match prepare format
    annotate label tag compress consolidate compile distill collapse analyze analyse average count
    sum pseudonymize translate classify turn shape link stitch augment supplement derive
    select project encrypt redact"""
# Their object is where the data goes: `S feeds T`.
_FEED = """feed populate power drive fill update refresh produce generate create build back supply
    hydrate train inform maintain underpin output emit write form yield"""
# Their object is where the data comes from: `T joins A and B`.
_DRAW = """join combine merge union aggregate summarize summarise consume read use query blend
    deduplicate dedupe clean filter enrich average count sum"""
_JOIN = """join merge combine union enrich match blend augment supplement stitch link unify
    reconcile consolidate"""

_IRREGULAR = {
    "write": ("writes", "written", "writing"), "send": ("sends", "sent", "sending"),
    "feed": ("feeds", "fed", "feeding"), "put": ("puts", "put", "putting"),
    "go": ("goes", "gone", "going"), "build": ("builds", "built", "building"),
    "drive": ("drives", "driven", "driving"), "read": ("reads", "read", "reading"),
    "split": ("splits", "split", "splitting"), "bring": ("brings", "brought", "bringing"),
    "sync": ("syncs", "synced", "syncing"), "map": ("maps", "mapped", "mapping"),
    "tag": ("tags", "tagged", "tagging"), "sum": ("sums", "summed", "summing"),
    "drop": ("drops", "dropped", "dropping"), "ship": ("ships", "shipped", "shipping"),
    "transfer": ("transfers", "transferred", "transferring"), "cast": ("casts", "cast", "casting"),
    "output": ("outputs", "output", "outputting"), "sink": ("sinks", "sunk", "sinking"),
    "draw": ("draws", "drawn", "drawing"), "make": ("makes", "made", "making"),
    "pass": ("passes", "passed", "passing"),
}  # fmt: skip
_PARTICIPLES = word_set("made drawn kept held taken run shown found known set cut written")


def third_person(base: str) -> str:
    """`load` → loads, `push` → pushes, `query` → queries."""
    if base in _IRREGULAR:
        return _IRREGULAR[base][0]
    if base.endswith(("s", "sh", "ch", "x", "z")):
        return f"{base}es"
    return f"{base[:-1]}ies" if re.search(r"[^aeiou]y$", base) else f"{base}s"


def participle(base: str) -> str:
    """`load` → loaded, `merge` → merged, `query` → queried."""
    if base in _IRREGULAR:
        return _IRREGULAR[base][1]
    if base.endswith("e"):
        return f"{base}d"
    return f"{base[:-1]}ied" if re.search(r"[^aeiou]y$", base) else f"{base}ed"


def gerund(base: str) -> str:
    """`load` → loading, `merge` → merging."""
    if base in _IRREGULAR:
        return _IRREGULAR[base][2]
    return f"{base[:-1]}ing" if re.search(r"[^e]e$", base) else f"{base}ing"


def _active(bases: str) -> frozenset[str]:
    return frozenset(form for base in bases.split() for form in (base, third_person(base)))


MOVE, CHANGE, FEED, DRAW = map(_active, (_MOVE, _CHANGE, _FEED, _DRAW))
MOVE_BASES, CHANGE_BASES, FEED_BASES = (frozenset(v.split()) for v in (_MOVE, _CHANGE, _FEED))
BASES = MOVE_BASES | CHANGE_BASES | FEED_BASES
JOINED = frozenset(participle(base) for base in _JOIN.split())
JOINS = _active(_JOIN)
GERUNDS = {gerund(base): base for base in (*BASES, *_DRAW.split())}
KNOWN_PARTICIPLES = frozenset(participle(base) for base in (*BASES, *_DRAW.split())) | _PARTICIPLES


def is_participle(word: str) -> bool:
    """Tell whether a word can follow `is`: a verb listed here, or any regular one."""
    word = word.casefold()
    return word in KNOWN_PARTICIPLES or bool(re.fullmatch(r"[a-z-]{3,}ed", word))
