"""sqlglot's own lineage on the statements: one call for all output columns."""

from sqlglot import exp, parse_one
from sqlglot.lineage import lineage
from timing import main


def prepare(schema):  # type: ignore[no-untyped-def]
    typed = {table: dict.fromkeys(columns, "TEXT") for table, columns in schema.items()}

    def read(sql):  # type: ignore[no-untyped-def]
        tree = parse_one(sql, dialect="duckdb")
        query = tree.expression if isinstance(tree, exp.Create) else tree
        return lineage(None, query, dialect="duckdb", schema=typed)

    return read


main(prepare)
