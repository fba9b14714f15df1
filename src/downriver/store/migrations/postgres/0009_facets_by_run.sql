-- The facets of some runs, however many runs their jobs have.
CREATE INDEX facets_by_run ON facets (run) WHERE run <> 0;
