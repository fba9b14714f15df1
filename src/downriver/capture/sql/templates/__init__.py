"""SQL templates: Jinja and dbt."""
