"""The OpenLineage facets, one module a family: it parses the facet and renders it."""
