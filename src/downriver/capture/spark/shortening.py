"""The shortest plan that says the same of columns: a long one takes Spark seconds to write down.

Projections upon projections are what makes plans long: a step a column, a select a step. Spark can
merge them, and where the plan was run it has done so already.
"""

from __future__ import annotations

from downriver.capture.spark.java import Java, operators_in, simple_name

_WIDE = 100  # columns: what is narrower is short anyway
# Optimizing may merge these, or takes them away, and no column depends on anything else for it.
_FOLDED = frozenset({"Project", "SubqueryAlias", "View", "WriteFiles"})
# What the optimizer computes at once no longer says where it comes from.
_COMPUTED = frozenset({"LocalRelation", "OneRowRelation"})


class Shortening:
    """Merges projections."""

    def __init__(self, jvm: Java) -> None:
        self._collapse = jvm.org.apache.spark.sql.catalyst.optimizer.CollapseProject.apply

    def shorten(self, query: Java, width: int, ran: Java | None) -> Java:
        """Return a plan of a query with as few projections as there can be.

        If it is wide and was run, that is the optimized plan, provided that this has the same
        operators otherwise. A branch that can never be taken has no columns there.
        """
        if ran is not None and width >= _WIDE:
            kinds, optimized = _kinds(query), _optimized(ran)
            tells = optimized is not None and not _COMPUTED.intersection(kinds)
            if tells and kinds == _kinds(optimized):
                return optimized
        return self._collapse(query)


def _optimized(ran: Java) -> Java | None:
    """Return the optimized plan of a query that was run, be it to write files."""
    plan = ran.optimizedPlan()
    if simple_name(plan) == "InsertIntoHadoopFsRelationCommand":
        plan = plan.query()
        return plan.child() if simple_name(plan) == "WriteFiles" else plan
    return None if simple_name(plan).endswith("Command") else plan


def _kinds(plan: Java) -> list[str]:
    kinds = [kind for _, kind in operators_in(str(plan.numberedTreeString()))]
    return [kind for kind in kinds if kind not in _FOLDED]
