"""Commands that record lineage: events, SQL, dbt, source code, Spark jobs."""
