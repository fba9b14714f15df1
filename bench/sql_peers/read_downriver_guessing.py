"""Downriver on the statements, with the dialect guessed from the text."""

from timing import main

from downriver.capture.sql import parse_sql_lineage


def prepare(schema):  # type: ignore[no-untyped-def]
    return lambda sql: parse_sql_lineage(sql, schema=schema)


main(prepare)
