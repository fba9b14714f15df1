"""Changes of dbt projects: their files, names, settings and build output."""
