"""Commands that exchange lineage with other catalogs and graph databases."""
