"""Data frames of PySpark and pandas as column lineage."""
