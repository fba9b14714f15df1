"""Translates the operators of an explained plan into the JSON form of plans.

An operator whose text cannot be read becomes an unknown operator: each of its columns may use
every input column, which is a blind spot.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from downriver.capture.spark.connect.expression_text import (
    ExpressionParser,
    UnreadableTextError,
    make_attribute,
    make_node,
    split_columns,
    split_lists,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from downriver.capture.spark.connect.explain import TextOperator
    from downriver.capture.spark.plan.tree import Flat

    Fields = dict[str, Any]
    Names = dict[int, str]  # of columns, by id

_GLOBAL_VIEWS = "global_temp"
_UNREAD = " (unreadable text)"
_RANGE = "Range"  # it prints no columns
_LEAVES = frozenset(
    {
        "HiveTableRelation", "LocalRelation", "LogicalRDD", "OneRowRelation", _RANGE, "Relation",
        "RelationV2", "StreamingRelation", "StreamingRelationV2",
    }
)  # fmt: skip
_QUOTED_NAME = re.compile(r"`((?:[^`]|``){1,500})`")
_FUNCTION = re.compile(r"([\w<>$.-]{1,200})\(")
_CODE_ID = re.compile(r"#\d{1,18}L?")
_NUMBER = re.compile(r"\d{1,18}")
_NUMBERS = re.compile(r"(\d{1,9}), (\d{1,9}), ")


# Operators with the columns of their first input.
_SAME_COLUMNS = frozenset(
    {
        "CollectMetrics", "Deduplicate", "DeduplicateWithinWatermark", "Distinct",
        "EventTimeWatermark", "Except", "Filter", "GlobalLimit", "Intersect", "LocalLimit",
        "Offset", "PipeOperator", "RebalancePartitions", "Repartition", "RepartitionByExpression",
        "ResolvedHint", "ReturnAnswer", "Sample", "Sort", "SubqueryAlias", "Tail", "Union", "View",
    }
)  # fmt: skip


class TextLeaf(NamedTuple):
    """A leaf of a plan: its kind, the text around its columns, and their ids and names."""

    kind: str
    before: str
    after: str
    columns: list[int]
    names: list[str]


class _Translated(NamedTuple):
    """A translated operator, with the names of its columns and of all columns below it."""

    tree: Flat
    names: Names
    has_range: bool


class PlanTranslation:
    """Translates one plan. `leaves` are its leaves, with those of subqueries before the others."""

    def __init__(self) -> None:
        self.leaves: list[TextLeaf] = []

    def translate(self, operator: TextOperator) -> Flat | None:
        """Return a plan; None if its columns are not known."""
        tree = self._translate(operator, {}).tree
        for node in tree:
            if node["class"].endswith(_UNREAD):
                return None
            if node["class"] not in _SAME_COLUMNS:
                break
        return tree

    def _translate(self, operator: TextOperator, outer: Mapping[int, str]) -> _Translated:
        inputs = [self._translate(each, outer) for each in operator.inputs]
        if not inputs and operator.kind in _LEAVES:
            return self._leaf(operator)
        names: Names = {}
        for each in inputs:
            names.update(each.names)
        visible = {**outer, **names}
        subqueries = [self._translate(each, visible) for each in operator.subqueries]
        trees = [each.tree for each in inputs]
        if operator.kind == "View":
            trees = [_without_own_casts(tree) for tree in trees]
        has_range = any(each.has_range for each in [*inputs, *subqueries])
        parser = ExpressionParser(visible, [each.tree for each in subqueries])
        reader = _OPERATORS.get(operator.kind)
        fields: Fields | None = None
        if reader is not None:
            try:
                fields = reader(operator.text, parser)
            except UnreadableTextError:
                fields = None
        own = names_of(fields) if fields is not None else {}
        if fields is not None and (has_range or _uses_known(fields, visible)):
            tree = make_node(operator.kind, trees, **fields)
        else:
            own = dict(_columns(operator.text))
            output = [make_attribute(name, at) for at, name in {**names, **own}.items()]
            tree = make_node(f"{operator.kind}{_UNREAD}", trees, output=output)
            if not inputs:
                self.leaves.append(TextLeaf(operator.kind, operator.text, "", list(own), []))
        for each in subqueries:  # the columns of a lateral subquery
            names.update(each.names)
        return _Translated(tree, {**names, **own}, has_range)

    def _leaf(self, operator: TextOperator) -> _Translated:
        before, listed, after = _around_columns(operator)
        names = {expr_id: name for name, expr_id in split_columns(listed)}
        self.leaves.append(
            TextLeaf(operator.kind, before, after, list(names), list(names.values()))
        )
        output = [make_attribute(name, expr_id) for expr_id, name in names.items()]
        tree = make_node("LogicalRelation", output=output)
        return _Translated(tree, names, operator.kind == _RANGE)


def _without_own_casts(tree: Flat) -> Flat:
    """Return the plan of a view without the casts to the types of its columns: Spark adds them."""
    items = tree[0].get("projectList")
    if items is None:
        return tree
    plain = [_without_cast(item) for item in items]
    return [{**tree[0], "projectList": plain}, *tree[1:]]


def _without_cast(item: Flat) -> Flat:
    match item:
        case [{"class": "Alias"} as alias, {"class": "Cast"}, *_, {"class": "AttributeReference"}]:
            if item[-1]["name"] == alias["name"]:
                return [alias, item[-1]]
    return item


def names_of(fields: Fields) -> Names:
    """Return the columns that the fields of an operator add, by id."""
    names: Names = {}
    for tree in _trees(fields):
        if tree[0]["class"] in {"Alias", "AttributeReference"}:
            names[tree[0]["exprId"]["id"]] = tree[0]["name"]
    return names


def _uses_known(fields: Fields, visible: Mapping[int, str]) -> bool:
    """Return whether every column that an operator uses is a column below it."""
    made = {
        tree[0]["exprId"]["id"]
        for name in _MADE
        for tree in fields.get(name, ())
        if tree[0]["class"] == "AttributeReference"
    }
    used = {
        node["exprId"]["id"]
        for tree in _trees(fields)
        for node in tree
        if node["class"] == "AttributeReference"
    }
    return used - made <= visible.keys()


_MADE = ("output", "generatorOutput")  # fields with columns that an operator adds


def _trees(fields: Fields) -> Iterator[Flat]:
    waiting = list(fields.values())
    while waiting:
        value = waiting.pop()
        if not isinstance(value, list) or not value:
            continue
        if isinstance(value[0], dict) and "num-children" in value[0]:
            yield value
        else:
            waiting += value


def _around_columns(operator: TextOperator) -> tuple[str, str, str]:
    """Return the text of a leaf before its columns, its columns, and the text after them."""
    if operator.kind == "HiveTableRelation":
        before, _, rest = operator.text.partition("Data Cols: ")
        return before, rest.replace("[", "").replace("]", ""), ""
    before, _, rest = operator.text.partition("[")
    listed, _, after = rest.partition("]")
    while listed.count("[") > listed.count("]") and after:
        more, _, after = after.partition("]")
        listed += f"]{more}"
    return before.strip(), listed, after.strip()


def _columns(text: str) -> Iterator[tuple[int, str]]:
    """Return the columns in a text: their ids, and what may be their names."""
    for name, expr_id in split_columns(text):
        yield expr_id, name.rpartition(" ")[2].lstrip("[(")


def _lists(text: str, count: int) -> list[str]:
    found = split_lists(text)
    if len(found) < count:
        raise UnreadableTextError(text)
    return found


def _attributes(listed: str) -> list[Flat]:
    return [make_attribute(*column) for column in split_columns(listed)]


def _project(text: str, parser: ExpressionParser) -> Fields:
    if not (text.startswith("[") and text.endswith("]")):
        raise UnreadableTextError(text)
    return {"projectList": parser.items(text[1:-1])}


def _filter(text: str, parser: ExpressionParser) -> Fields:
    return {"condition": parser.expression(text)}


def _join(text: str, parser: ExpressionParser) -> Fields:
    how, _, condition = text.partition(",")
    fields: Fields = {"joinType": {"object": how.partition("(")[0]}}
    added = split_columns(how.partition("(")[2])
    if added:  # an existence join
        fields["joinType"]["exists"] = make_attribute(*added[0])
    if condition:
        fields["condition"] = parser.expression(condition.strip())
    return fields


def _lateral_join(text: str, parser: ExpressionParser) -> Fields:
    expression = parser.expression(text)
    right = next((node for node in expression if node["class"] == "LateralSubquery"), None)
    if right is None:
        raise UnreadableTextError(text)
    how = text.rpartition("],")[2].strip().partition(",")[0]
    return {"joinType": {"object": how}, "right": [right]}


def _aggregate(text: str, parser: ExpressionParser) -> Fields:
    *keys, items = _lists(text, 1)
    grouping = [parser.expression(key) for key in keys if key]
    return {"groupingExpressions": grouping, "aggregateExpressions": parser.items(items)}


def _window(text: str, parser: ExpressionParser) -> Fields:
    return {"windowExpressions": parser.items(_lists(text, 1)[0])}


def _sort(text: str, parser: ExpressionParser) -> Fields:
    return {"order": [parser.expression(_lists(text, 1)[0])]}


def _generate(text: str, parser: ExpressionParser) -> Fields:
    generator = text[: _end_of_call(text)]
    return {
        "generator": parser.expression(generator),
        "generatorOutput": _attributes(_lists(text, 1)[-1]),
    }


def _end_of_call(text: str) -> int:
    """Return the position after the first pair of brackets."""
    depth = 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == ")" and depth == 0:
            code = _CODE_ID.match(text, at + 1)  # a function of Python has an id
            return code.end() if code else at + 1
    raise UnreadableTextError(text)


def _expand(text: str, parser: ExpressionParser) -> Fields:
    projections, output = _lists(text, 2)[:2]
    columns = _attributes(output)
    rows = []
    for row in split_lists(projections):
        values = row.split(", ")
        if len(values) != len(columns):
            raise UnreadableTextError(text)
        rows.append([parser.expression(value) for value in values])
    return {"projections": rows, "output": columns}


def _deduplicate(text: str, parser: ExpressionParser) -> Fields:
    return {"keys": [parser.expression(_lists(text, 1)[0])]}


def _code(text: str, parser: ExpressionParser) -> Fields:
    """Read Python code on rows: `[keys], function(arguments)#7, [output]`."""
    lists = _lists(text, 1)
    name = _FUNCTION.search(text)
    fields: Fields = {
        "functionExpr": make_node("PythonUDF", name=name[1] if name else "a function"),
        "output": _attributes(lists[-1]),
    }
    if text.startswith("["):
        fields["groupingAttributes"] = [parser.expression(lists[0])]
    if lengths := _NUMBERS.match(text):  # the first columns of each input of a cogroup
        fields["leftGroupingLen"], fields["rightGroupingLen"] = map(int, lengths.groups())
    return fields


def _view(text: str, parser: ExpressionParser) -> Fields:
    quoted = text.partition(", [")[0]
    parts = [part.replace("``", "`") for part in _QUOTED_NAME.findall(quoted)]
    if len(parts) < 2 or parts[-2] == _GLOBAL_VIEWS:
        return {"isTempView": True}
    identifier = {"database": parts[-2], "table": parts[-1]}
    return {"isTempView": False, "desc": {"identifier": identifier}}


def _define_cte(text: str, parser: ExpressionParser) -> Fields:
    return {"id": _number(text)}


def _read_cte(text: str, parser: ExpressionParser) -> Fields:
    return {"cteId": _number(text), "output": _attributes(_lists(text, 1)[0])}


def _number(text: str) -> int:
    number = _NUMBER.match(text)
    if number is None:
        raise UnreadableTextError(text)
    return int(number[0])


def _without_expressions(text: str, parser: ExpressionParser) -> Fields:
    return {}


_OPERATORS: dict[str, Callable[[str, ExpressionParser], Fields]] = {
    "Project": _project,
    "Filter": _filter,
    "Join": _join,
    "LateralJoin": _lateral_join,
    "Aggregate": _aggregate,
    "Window": _window,
    "Sort": _sort,
    "Generate": _generate,
    "Expand": _expand,
    "Deduplicate": _deduplicate,
    "DeduplicateWithinWatermark": _deduplicate,
    "View": _view,
    "CTERelationDef": _define_cte,
    "CTERelationRef": _read_cte,
    **dict.fromkeys(
        (
            "FlatMapCoGroupsInArrow", "FlatMapCoGroupsInPandas", "FlatMapGroupsInArrow",
            "FlatMapGroupsInPandas", "MapInArrow", "MapInPandas", "PythonMapInArrow",
        ),
        _code,
    ),
    **dict.fromkeys(
        _SAME_COLUMNS - {"Deduplicate", "DeduplicateWithinWatermark", "Filter", "Sort", "View"}
        | {"WithCTE"},
        _without_expressions,
    ),
}  # fmt: skip
