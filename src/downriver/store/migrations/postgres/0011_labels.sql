-- The nodes whose labels a batch may have changed, so that the search index reads only these again.
ALTER TABLE changes ADD COLUMN labelled BYTEA NOT NULL DEFAULT ''::bytea;
-- The labels of all nodes, without a scan of the facets of every run.
CREATE INDEX facets_of_labels ON facets (name, node)
    WHERE role = 0 AND run = 0
      AND name IN ('datasetType', 'downriver_asset', 'jobType', 'ownership', 'tags');
CREATE INDEX facets_of_tag_statements ON facets (node)
    WHERE name >= 'downriver_tag_' AND name < 'downriver_tag_~';
