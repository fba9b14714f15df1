"""Commands that capture lineage from other systems, and list versions of datasets."""
