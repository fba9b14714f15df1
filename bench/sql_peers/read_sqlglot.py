"""sqlglot's own lineage on the statements: qualified once, then a call for each output column."""

from sqlglot import exp, parse_one
from sqlglot.lineage import lineage
from sqlglot.optimizer import build_scope, qualify
from timing import main


def prepare(schema):  # type: ignore[no-untyped-def]
    typed = {table: dict.fromkeys(columns, "TEXT") for table, columns in schema.items()}

    def read(sql):  # type: ignore[no-untyped-def]
        tree = parse_one(sql, dialect="duckdb")
        query = tree.expression if isinstance(tree, exp.Create) else tree
        qualified = qualify.qualify(
            query, dialect="duckdb", schema=typed, validate_qualify_columns=False
        )
        scope = build_scope(qualified)
        return [
            lineage(name, qualified, dialect="duckdb", schema=typed, scope=scope)
            for name in qualified.named_selects
        ]

    return read


main(prepare)
