"""DataHub's parser on the statements."""

from datahub.sql_parsing.schema_resolver import SchemaResolver
from datahub.sql_parsing.sqlglot_lineage import sqlglot_lineage
from timing import main


def prepare(schema):  # type: ignore[no-untyped-def]
    resolver = SchemaResolver(platform="duckdb")
    for table, columns in schema.items():
        urn = f"urn:li:dataset:(urn:li:dataPlatform:duckdb,main.{table},PROD)"
        resolver.add_raw_schema_info(urn, dict.fromkeys(columns, "VARCHAR"))

    def read(sql):  # type: ignore[no-untyped-def]
        result = sqlglot_lineage(sql, resolver, default_schema="main", override_dialect="duckdb")
        if result.debug_info.error:
            raise result.debug_info.error
        return result

    return read


main(prepare)
