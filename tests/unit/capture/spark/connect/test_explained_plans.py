"""Plans of Spark Connect are read from the text that EXPLAIN EXTENDED prints."""

from __future__ import annotations

import msgspec
import pytest

from downriver.capture.spark.actions import DatasetLocation, PlanLeaf, SparkAction
from downriver.capture.spark.connect.explain import parse_explained
from downriver.capture.spark.connect.plan_nodes import PlanTranslation
from downriver.capture.spark.plan.lineage import PlanLineage, read_lineage
from downriver.model.ids import DatasetId

LEAF = "Relation [id#1,city#2,pay#3] parquet"


def lineage(*lines: str) -> PlanLineage | None:
    """Return the lineage of an analysed plan; its files are the dataset `staff`."""
    text = "\n".join(["== Analyzed Logical Plan ==", "columns: string", *lines, ""])
    root = parse_explained(text).analyzed
    assert root is not None
    translation = PlanTranslation()
    tree = translation.translate(root)
    if tree is None:
        return None
    staff = [DatasetLocation(DatasetId("file", "/staff"))]
    leaves = [
        PlanLeaf(leaf.columns[0], staff, columns=leaf.columns)
        for leaf in translation.leaves
        if leaf.kind == "Relation"
    ]
    plan = msgspec.json.encode(tree).decode()
    return read_lineage(
        SparkAction(name="save", ended_at=0, duration_ns=0, columns=[], plan=plan, leaves=leaves)
    )


def edges(*lines: str) -> set[str]:
    """Return the edges of the columns of a plan that is read completely."""
    found = lineage(*lines)
    assert found is not None
    assert not found.spots
    return {
        f"{key[1]} -> {column.name}: {key[2].name}"
        for column in found.columns
        for key in column.deps
    }


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("id#1", {"id -> id: IDENTITY"}),
        ("id#1 AS key#9", {"id -> key: IDENTITY"}),
        ("id#1 AS id AS key#9", {"id -> id AS key: IDENTITY"}),
        ("(id#1 + 1) AS next#9", {"id -> next: TRANSFORMATION"}),
        ("-pay#3 AS cost#9", {"pay -> cost: TRANSFORMATION"}),
        ("upper(city#2) AS city, in capitals#9", {"city -> city, in capitals: TRANSFORMATION"}),
        (
            "CASE WHEN (id#1 = 1) THEN pay#3 ELSE cast(0 as double) END AS pay#9",
            {"id -> pay: CONDITIONAL", "pay -> pay: TRANSFORMATION"},
        ),
        (
            "if ((id#1 > 1)) city#2 else cast(null as string) AS city#9",
            {"id -> city: CONDITIONAL", "city -> city: TRANSFORMATION"},
        ),
        (
            "coalesce(city#2, none) AS city#9",
            {"city -> city: CONDITIONAL", "city -> city: TRANSFORMATION"},
        ),
        (
            "transform(array(id#1), lambdafunction((lambda x#7 + pay#3), lambda x#7)) AS l#9",
            {"id -> l: TRANSFORMATION", "pay -> l: TRANSFORMATION"},
        ),
    ],
)
def test_items_of_a_select_list(item: str, expected: set[str]) -> None:
    assert edges(f"Project [{item}]", f"+- {LEAF}") == expected


def test_names_that_look_like_calls_are_columns() -> None:
    assert edges(
        "Project [sum(pay)#8 AS total#9]",
        "+- Aggregate [city#2], [city#2, sum(pay#3) AS sum(pay)#8]",
        f"   +- {LEAF}",
    ) == {"pay -> total: AGGREGATION"}


def test_a_subquery_belongs_to_the_expression_that_contains_it() -> None:
    found = lineage(
        "Project [id#1, scalar-subquery#5 [id#1] AS most#6]",
        ":  +- Aggregate [max(pay#13) AS max(pay)#14]",
        ":     +- Filter (id#11 = outer(id#1))",
        ":        +- Relation [id#11,city#12,pay#13] parquet",
        f"+- {LEAF}",
    )
    assert found is not None
    (_, most) = found.columns
    assert {(key[1], key[2].name) for key in most.deps} >= {("pay", "AGGREGATION")}


def test_code_of_the_user_is_opaque() -> None:
    found = lineage("Project [score(id#1, pay#3)#4 AS score#9]", f"+- {LEAF}")
    assert found is not None
    assert [spot.kind for spot in found.spots] == ["opaque_function"]
    assert {key[1] for key in found.columns[0].deps} == {"id", "pay"}


@pytest.mark.parametrize(
    "operator",
    [
        "Project [concat(city#2, () AS odd#9]",  # a literal with one bracket
        "Project [gone#77 AS back#9]",  # a column that no operator below has
        "Unheard [id#1]",
    ],
)
def test_text_that_cannot_be_read_has_no_columns(operator: str) -> None:
    assert lineage(operator, f"+- {LEAF}") is None


def test_an_unread_operator_below_is_a_blind_spot() -> None:
    found = lineage(
        "Project [id#1]",
        "+- Filter (city#2 = a#50 ) b)",
        f"   +- {LEAF}",
    )
    assert found is not None
    assert [spot.kind for spot in found.spots] == ["unknown_operator"]
    assert {key[1] for key in found.columns[0].deps} == {"id", "city", "pay"}


def test_a_literal_may_contain_a_line_break() -> None:
    assert edges("Project [id#1]", "+- Filter (city#2 = first", "second)", f"   +- {LEAF}") == {
        "id -> id: IDENTITY"
    }


def test_text_of_any_length_is_read_in_linear_steps() -> None:
    items = ", ".join(f"f{n}(id#1, city#2) AS c{n}#{n + 100}" for n in range(2_000))
    assert len(edges(f"Project [{items}]", f"+- {LEAF}")) == 4_000
