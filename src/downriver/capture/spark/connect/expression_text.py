"""Parses expressions as Spark prints them, into the JSON form that its plans have.

The text is not exact: strings have no quotes. But columns have ids, so columns and the calls around
them are exact. The result keeps the text for display.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from downriver.capture.spark.plan.tree import Flat

_ID = re.compile(r"#(\d{1,18})L?(?!\w)")
_ITEM_END = re.compile(r"#\d{1,18}L?(?:-T\d{1,18}ms)?\Z")
_CALL = re.compile(r"[\w$<>.-]{1,200}\(")
_LAMBDA_VARIABLE = re.compile(r"lambda \w{1,200}#\d{1,18}L?")
_SUBQUERY = re.compile(r"(scalar-subquery|lateral-subquery|list|exists)#\d{1,18} \[")
_KEYWORD = re.compile(r"(?:CASE|WHEN|THEN|ELSE|END|FILTER|if(?= \()|else)(?!\w)")
_WORD = re.compile(r"\w{1,200}")
_ALIAS = " AS "
_IN = "IN"
_COMPARED = re.compile(r"(?:<=>|[<>=!]{1,2}) (.+)\Z", re.DOTALL)
_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")
_BRANCHES = frozenset({"CASE", "WHEN", "THEN", "ELSE", "END"})
_WINDOW = "windowspecdefinition"

_AGGREGATES = frozenset(
    {
        "any_value", "approx_count_distinct", "approx_percentile", "approx_top_k", "avg", "bit_and",
        "bit_or", "bit_xor", "bitmap_construct_agg", "bitmap_or_agg", "bool_and", "bool_or",
        "collect_list", "collect_set", "corr", "count", "count_if", "count_min_sketch",
        "covar_pop", "covar_samp", "every", "first", "first_value", "grouping", "grouping_id",
        "histogram_numeric", "hll_sketch_agg", "hll_union_agg", "kurtosis", "last", "last_value",
        "listagg", "max", "max_by", "mean", "median", "min", "min_by", "mode", "percentile",
        "percentile_approx", "percentile_cont", "percentile_disc", "pivotfirst", "product",
        "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2", "regr_slope",
        "regr_sxx", "regr_sxy", "regr_syy", "schema_of_variant_agg", "skewness", "some", "std",
        "stddev", "stddev_pop", "stddev_samp", "string_agg", "sum", "try_avg", "try_sum",
        "var_pop", "var_samp", "variance",
    }
)  # fmt: skip
# Calls with rules of their own in the column algebra, by the class name that they print.
_CLASSES = {
    "aes_encrypt": "AesEncrypt",
    "approx_count_distinct": "HyperLogLogPlusPlus",
    "cast": "Cast",
    "coalesce": "Coalesce",
    "count": "Count",
    "count_if": "CountIf",
    "crc32": "Crc32",
    "dense_rank": "DenseRank",
    "hash": "Murmur3Hash",
    "input_file_block_length": "InputFileBlockLength",
    "input_file_block_start": "InputFileBlockStart",
    "input_file_name": "InputFileName",
    "mask": "Mask",
    "max_by": "MaxBy",
    "md5": "Md5",
    "min_by": "MinBy",
    "ifnull": "Coalesce",
    "nvl": "Coalesce",
    "percent_rank": "PercentRank",
    "pivotfirst": "PivotFirst",
    "rank": "Rank",
    "sha1": "Sha1",
    "sha2": "Sha2",
    "stack": "Stack",
    "udf": "ScalaUDF",
    "xxhash64": "XxHash64",
}
_SUBQUERIES = {
    "scalar-subquery": "ScalarSubquery",
    "list": "ListQuery",
    "exists": "Exists",
    "lateral-subquery": "LateralSubquery",
}


class UnreadableTextError(ValueError):
    """The text of an operator is unreadable: its brackets do not match, because of a literal."""


def make_node(kind: str, children: Sequence[Flat] = (), **fields: Any) -> Flat:
    """Return a tree in the JSON form of plans."""
    head = {"class": kind, "num-children": len(children), **fields}
    return [head, *(node for child in children for node in child)]


def make_attribute(name: str, expr_id: int) -> Flat:
    """Return a column."""
    return make_node("AttributeReference", name=name, exprId={"id": expr_id})


def split_columns(text: str) -> list[tuple[str, int]]:
    """Return the names and ids of a list of columns, such as the output of a relation."""
    found, start = [], 0
    for match in _ID.finditer(text):
        name = text[start : match.start()].strip()
        found.append((name.removeprefix(",").strip(), int(match[1])))
        start = match.end()
    return found


def split_lists(text: str) -> list[str]:
    """Return the contents of the bracketed lists of an operator, as in `[a#1], [b#2]`."""
    found, depth, start = [], 0, 0
    for at, char in enumerate(text):
        if char in _OPEN:
            if depth == 0 and char == "[":
                start = at + 1
            depth += 1
        elif char in _CLOSE:
            depth -= 1
            if depth < 0:
                raise UnreadableTextError(text)
            if depth == 0 and char == "]":
                found.append(text[start:at])
    if depth:
        raise UnreadableTextError(text)
    return found


class _Text(NamedTuple):
    """Literals and operators between columns and calls."""

    text: str


class _Call(NamedTuple):
    """A call or a pair of brackets. Each argument is a list of columns, calls and keywords."""

    name: str
    arguments: list[list[Any]]


class ExpressionParser:
    """Parses the expressions of one operator.

    `known` are the names of the columns below it, by id. `subqueries` are the plans of its
    subqueries, in order: each is taken by the expression that contains it.
    """

    def __init__(self, known: Mapping[int, str], subqueries: Iterable[Flat] = ()) -> None:
        self._known = known
        self._subqueries = list(subqueries)

    def items(self, text: str) -> list[Flat]:
        """Parse a select list: columns, and expressions with an alias."""
        return [self._item(item) for item in _split_items(text)]

    def _item(self, text: str) -> Flat:
        columns = split_columns(text)
        if not columns:
            raise UnreadableTextError(text)
        name, expr_id = columns[-1]
        if len(columns) == 1 and expr_id in self._known:
            return make_attribute(self._known[expr_id] or name, expr_id)
        split = _find_alias(text)
        if split < 0:
            return make_node("Alias", [self.expression(text)], name=name, exprId={"id": expr_id})
        alias = text[split + len(_ALIAS) : text.rfind("#")]
        value = self.expression(text[:split])
        return make_node("Alias", [value], name=alias, exprId={"id": expr_id})

    def expression(self, text: str) -> Flat:
        """Parse an expression."""
        parsed = _fold(self._parse(text))
        return [{**parsed[0], "text": _ID.sub("", text).strip()}, *parsed[1:]]

    def _parse(self, text: str) -> list[Any]:
        """Return the parts of an expression: columns and subqueries as trees, calls, keywords."""
        calls = [_Call("", [[]])]
        at = start = 0  # `start` is the end of the part before
        while at < len(text):
            arguments = calls[-1].arguments
            char = text[at]
            part: Any = None
            if variable := _LAMBDA_VARIABLE.match(text, at):
                end = variable.end()
            elif subquery := _SUBQUERY.match(text, at):
                part, end = self._subquery(subquery[1]), _end_of_list(text, subquery.end())
            elif (call := _CALL.match(text, at)) or char in _OPEN:
                _add_text(arguments[-1], text[start:at])
                calls.append(_Call(call[0][:-1] if call else "", [[]]))
                at = start = call.end() if call else at + 1
                continue
            elif char in _CLOSE:
                if len(calls) == 1:
                    raise UnreadableTextError(text)
                _add_text(arguments[-1], text[start:at])
                closed = calls.pop()
                part, end = self._closed(closed, text, at + 1)
                calls[-1].arguments[-1].append(part)
                at = start = end
                continue
            elif char == ",":
                _add_text(arguments[-1], text[start:at])
                arguments.append([])
                at = start = at + 1
                continue
            elif char == "#" and (column := _ID.match(text, at)):
                name = self._name(int(column[1]), text[start:at])
                _add_text(arguments[-1], text[start : at - len(name)])
                arguments[-1].append(make_attribute(name, int(column[1])))
                at = start = column.end()
                continue
            elif keyword := _KEYWORD.match(text, at):
                part, end = keyword[0], keyword.end()
            else:
                word = _WORD.match(text, at)
                at = word.end() if word else at + 1
                continue
            _add_text(arguments[-1], text[start:at])
            arguments[-1].append(_Text("lambda") if part is None else part)
            at = start = end
        if len(calls) != 1:
            raise UnreadableTextError(text)
        _add_text(calls[0].arguments[-1], text[start:])
        return [part for argument in calls[0].arguments for part in argument]

    def _name(self, expr_id: int, before: str) -> str:
        """Return the name of a column at the end of the text before its id."""
        known = self._known.get(expr_id)
        return known if known and before.endswith(known) else before.split(" ")[-1]

    def _closed(self, call: _Call, text: str, at: int) -> tuple[Any, int]:
        """Return a call that ends before `at`. With an id, it is a column or user code."""
        number = _ID.match(text, at)
        if number is None:
            return call, at
        expr_id = int(number[1])
        if expr_id in self._known:  # the name of the column looks like a call
            return make_attribute(self._known[expr_id], expr_id), number.end()
        arguments = [_fold(argument) for argument in call.arguments]
        return make_node("PythonUDF", arguments, name=call.name), number.end()

    def _subquery(self, printed: str) -> Flat:
        if not self._subqueries:
            raise UnreadableTextError(printed)
        return make_node(_SUBQUERIES[printed], plan=self._subqueries.pop(0))


def _split_items(text: str) -> list[str]:
    """Split a select list. Each item ends with the id of its column, because names have commas."""
    items, depth, start = [], 0, 0
    for at, char in enumerate(text):
        if char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            depth -= 1
        elif char == "," and depth == 0 and _ITEM_END.search(text, max(start, at - 50), at):
            items.append(text[start:at].strip())
            start = at + 1
    if depth:
        raise UnreadableTextError(text)
    last = text[start:].strip()
    return [*items, last] if last else items


def _find_alias(text: str) -> int:
    """Return the position of the first ` AS ` with one column after it; -1 if there is none."""
    depth = 0
    for at, char in enumerate(text):
        if char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            depth -= 1
        elif (
            char == " "
            and depth == 0
            and text.startswith(_ALIAS, at)
            and len(_ID.findall(text, at)) == 1
        ):
            return at
    return -1


def _end_of_list(text: str, at: int) -> int:
    """Return the position after the list that begins at `at`: the outer columns of a subquery."""
    depth = 1
    while depth and at < len(text):
        depth += (text[at] in _OPEN) - (text[at] in _CLOSE)
        at += 1
    return at


def _add_text(parts: list[Any], text: str) -> None:
    if text.strip():
        parts.append(_Text(text.strip()))


def _fold(parts: list[Any]) -> Flat:
    """Return the parts of one expression as a tree."""
    parts = _fold_if(_fold_case(parts))
    nodes: list[Flat] = []
    for at, part in enumerate(parts):
        before = parts[at - 1] if at else None
        if isinstance(part, _Text) and (compared := _COMPARED.match(part.text)):
            nodes.append(make_node("Literal", value=compared[1]))
        if isinstance(part, (str, _Text)) or _is_window(part):
            continue
        node = _fold_call(part) if isinstance(part, _Call) else part
        if isinstance(before, _Text) and before.text.endswith(_IN) and isinstance(part, _Call):
            node = make_node("In", [make_node("Literal"), *map(_fold, part.arguments)])
        if at + 1 < len(parts) and _is_window(parts[at + 1]):
            specification = _fold_arguments("WindowSpecDefinition", parts[at + 1])
            node = make_node("WindowExpression", [node, specification])
        if before == "FILTER" and nodes and nodes[-1][0]["class"] == _AGGREGATE:
            node = make_node(_AGGREGATE, [nodes.pop()[1:], node])
        nodes.append(node)
    if len(nodes) == 1 and not any(isinstance(part, _Text) for part in parts):
        return nodes[0]
    if not nodes:
        return make_node("Literal", value=parts[0].text if len(parts) == 1 else None)
    return make_node("Operation", nodes)


_AGGREGATE = "AggregateExpression"


def _is_window(part: object) -> bool:
    return isinstance(part, _Call) and part.name == _WINDOW


def _fold_case(parts: list[Any]) -> list[Any]:
    """Replace CASE … END by a tree: its conditions and values in turns, as Spark has them."""
    done: list[Any] = []
    for part in parts:
        begin = -1
        if part == "END":
            begin = next((at for at in reversed(range(len(done))) if done[at] == "CASE"), -1)
        if begin < 0:
            done.append(part)
            continue
        branches: list[Flat] = []
        current: list[Any] = []
        for each in [*done[begin + 2 :], part]:  # after CASE WHEN
            if isinstance(each, str) and each in _BRANCHES:
                branches.append(_fold(current))
                current = []
            else:
                current.append(each)
        done[begin:] = [make_node("CaseWhen", branches)]
    return done


def _fold_if(parts: list[Any]) -> list[Any]:
    """Replace `if (condition) value else other` by a tree."""
    if "if" not in parts or "else" not in parts:
        return parts
    begin = parts.index("if")
    depth, middle = 0, -1
    for at in range(begin, len(parts)):
        depth += (parts[at] == "if") - (parts[at] == "else")
        if depth == 0:
            middle = at
            break
    if middle < begin + 2:
        return parts
    condition, value = parts[begin + 1 : begin + 2], parts[begin + 2 : middle]
    branches = [_fold(condition), _fold(value), _fold(parts[middle + 1 :])]
    return [*parts[:begin], make_node("If", branches)]


def _fold_call(call: _Call) -> Flat:
    if call.name == "named_struct":
        return _fold_struct(call)
    if not call.name:
        arguments = [_fold(argument) for argument in call.arguments]
        return arguments[0] if len(arguments) == 1 else make_node("Operation", arguments)
    name = call.name.lower()
    if name == "nullif" and len(call.arguments) == 2:
        left, right = map(_fold, call.arguments)
        return make_node("NullIf", [left, right], left=left, right=right)
    if name == "nvl2" and len(call.arguments) == 3:
        return make_node("If", [_fold(argument) for argument in call.arguments])
    node = _fold_arguments(_CLASSES.get(name, name), call)
    return make_node(_AGGREGATE, [node]) if name in _AGGREGATES else node


def _fold_struct(call: _Call) -> Flat:
    """Return a struct: the names and values of its fields in turns."""
    arguments = [_fold(argument) for argument in call.arguments]
    paired = len(arguments) % 2 == 0 and all(
        name[0]["class"] == "Literal" for name in arguments[::2]
    )
    return make_node("CreateNamedStruct" if paired else "Operation", arguments)


def _fold_arguments(kind: str, call: _Call) -> Flat:
    return make_node(kind, [_fold(argument) for argument in call.arguments])
