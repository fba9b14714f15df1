-- The nodes with owners or descriptions that a person states, without a scan of all facets.
CREATE INDEX facets_of_stated_labels ON facets (node)
    WHERE name >= 'downriver_stated_' AND name < 'downriver_stated_~';
