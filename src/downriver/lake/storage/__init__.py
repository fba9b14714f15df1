"""Files, versions and tables of a lake."""
