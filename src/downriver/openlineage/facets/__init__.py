"""The OpenLineage facets. Each module parses and renders one family of facets."""
