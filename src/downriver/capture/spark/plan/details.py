"""A shorter form of a plan from the JVM, and the details that its JSON leaves out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from downriver.capture.spark.actions import PlanDetails
from downriver.capture.spark.java import (
    Java,
    column_ids,
    element_texts,
    elements,
    operators_in,
    simple_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WIDE = 100  # columns; narrower plans are short
# The optimizer may merge or remove these without changing any dependency.
_FOLDED = frozenset({"Project", "SubqueryAlias", "WriteFiles"})
# The optimizer may compute these while it plans. Then their origins are lost.
_COMPUTED = frozenset({"LocalRelation", "OneRowRelation"})


class PlanShortener:
    """Merges the projections of a plan."""

    def __init__(self, jvm: Java) -> None:
        self._collapse = jvm.org.apache.spark.sql.catalyst.optimizer.CollapseProject.apply

    def merged(self, query: Java) -> Java:
        """Return a plan of a query with as few projections as possible."""
        return self._collapse(query)

    def optimized(self, query: Java, ran: Java) -> Java | None:
        """Return the optimized plan of a wide query that ran, if its operators are the same.

        The optimized plan has no columns for a branch that is never taken.
        """
        kinds, optimized = _kinds(query), _optimized(ran)
        is_comparable = optimized is not None and not _COMPUTED.intersection(kinds)
        return optimized if is_comparable and kinds == _kinds(optimized) else None


def _optimized(ran: Java) -> Java | None:
    """Return the optimized plan of a query that ran, also of one that writes files."""
    plan = ran.optimizedPlan()
    if simple_name(plan) == "InsertIntoHadoopFsRelationCommand":
        plan = plan.query()
        return plan.child() if simple_name(plan) == "WriteFiles" else plan
    return None if simple_name(plan).endswith("Command") else plan


_TEMPORARY_VIEW = re.compile(r"\bView \((?=`(?:global_temp`\.`)?[^`]*`,)")


def _kinds(plan: Java) -> list[str]:
    """Return the relevant operators. A persisted view is one of them: it is a dataset."""
    tree = _TEMPORARY_VIEW.sub("SubqueryAlias (", str(plan.numberedTreeString()))
    kinds = [kind for _, kind in operators_in(tree)]
    return [kind for kind in kinds if kind not in _FOLDED]


_ID_AT_THE_END = re.compile(r"#(\d+)L?$")
# Spark casts the inputs of these to common types, or to the types a view has stored.
_CASTING = frozenset({"Union", "Intersect", "Except", "View"})
_SELECT_LISTS = {"Project": "projectList", "Aggregate": "aggregateExpressions"}
_MOST_READ = 500


class PlanDetailReader:
    """Reads the details that the JSON of a plan leaves out, with few round trips."""

    def __init__(self, jvm: Java) -> None:
        self._user_cast_tag = (
            jvm.org.apache.spark.sql.catalyst.expressions.Cast.USER_SPECIFIED_CAST()
        )

    def read(self, plan: Callable[[], Java], tree: str, text: str, *, stored: bool) -> PlanDetails:
        """Return the details that the JSON leaves out. `tree` is the plan's numbered text.

        `stored`: the output is written to a table, whose column types may need casts.
        """
        operators = operators_in(tree)
        expanded: dict[int, list[list[str]]] = {}
        if '"projections":null' in text:
            expanded = dict(_expanded(plan(), operators))
        casts: frozenset[int] = frozenset()
        may_cast = stored or any(kind in _CASTING for _, kind in operators)
        if may_cast and ("cast(" in tree or "more fields" in tree):
            casts = frozenset(self._own_casts(plan(), operators, stored=stored))
        return PlanDetails(expanded, casts)

    def _own_casts(
        self, plan: Java, operators: list[tuple[int, str]], *, stored: bool
    ) -> Iterator[int]:
        """Yield the columns that Spark casts to another type by itself."""
        if stored:
            yield from self._cast_in(plan)
        for number, kind in operators:
            if kind in _CASTING:
                for child in elements(plan.p(number).children()):
                    yield from self._cast_in(child)

    def _cast_in(self, plan: Java) -> Iterator[int]:
        getter = _SELECT_LISTS.get(simple_name(plan))
        if getter is None:
            return
        items = getattr(plan, getter)()
        for at, text in enumerate(element_texts(items)[:_MOST_READ]):
            match = _ID_AT_THE_END.search(text)
            if match and "cast(" in text and " AS " in text and self._is_own(items.apply(at)):
                yield int(match[1])

    def _is_own(self, alias: Java) -> bool:
        value = alias.child()
        kind = simple_name(value)
        if kind == "CheckOverflowInTableInsert":
            value = value.child()
        elif kind == "StaticInvoke":  # checks a length when writing to a table
            value = value.arguments().head()
        return simple_name(value) == "Cast" and bool(
            value.getTagValue(self._user_cast_tag).isEmpty()
        )


def _expanded(
    plan: Java, operators: list[tuple[int, str]]
) -> Iterator[tuple[int, list[list[str]]]]:
    for number, kind in operators:
        if kind != "Expand":
            continue
        expand = plan.p(number)
        rows = expand.projections()
        output = column_ids(expand.output())
        if output and len(output) * rows.size() <= _MOST_READ:
            yield (
                output[0],
                [[str(value.toJSON()) for value in elements(row)] for row in elements(rows)],
            )
