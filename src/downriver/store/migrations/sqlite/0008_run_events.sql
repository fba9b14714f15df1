-- Lists in the order of time: events of runs, and how many there were of each kind in an hour.
CREATE TABLE run_events (
    at    INTEGER NOT NULL,               -- when the event happened, µs since the epoch
    seq   INTEGER NOT NULL,               -- its entry in the log
    state INTEGER NOT NULL,
    PRIMARY KEY (at, seq)
) WITHOUT ROWID;

CREATE INDEX runs_by_run ON runs (run);   -- a run is often asked for without its job

-- The systems that hold datasets. An index by the last time would have to follow every event.
CREATE INDEX facets_of_sources ON facets (digest, first_at) WHERE name = 'dataSource';

UPDATE meta SET projected = 0;            -- so that the catalog is folded again
