-- What each batch touched is one row, not an index on every row that may be touched: most batches see
-- again what is known, and that should change a row and nothing else.
CREATE TABLE changes (
    seq    INTEGER PRIMARY KEY,
    edges  BLOB NOT NULL,                 -- int32: the ids of those it added or touched
    claims BLOB NOT NULL
);
DROP TABLE edges;
CREATE TABLE edges (
    id INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL, source INTEGER NOT NULL, target INTEGER NOT NULL,
    via INTEGER NOT NULL,                 -- the job that stated a dataset-to-dataset edge, or 0
    first_at INTEGER NOT NULL, first_event BLOB NOT NULL,
    last_at INTEGER NOT NULL, last_event BLOB NOT NULL,
    observed INTEGER NOT NULL,
    UNIQUE (kind, source, target, via)
);
DROP TABLE claims;
CREATE TABLE claims (
    id INTEGER PRIMARY KEY,
    job INTEGER NOT NULL,                 -- 0 when the dataset itself says so
    dataset INTEGER NOT NULL, facet TEXT NOT NULL, digest BLOB NOT NULL,
    first_at INTEGER NOT NULL, first_event BLOB NOT NULL,
    last_at INTEGER NOT NULL, last_event BLOB NOT NULL,
    observed INTEGER NOT NULL,
    UNIQUE (job, dataset, facet, digest)
);

-- Digests come in no order. Bodies kept in theirs rewrote pages full of others for each new one; now
-- only the digests are in that order, and bodies follow one another as they come.
DROP TABLE bodies;
CREATE TABLE bodies (
    id     INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    body   BLOB NOT NULL                  -- a facet as sent, zstd when that is shorter
);

-- Measurements of runs by when they were first said: an index by the last time would have to follow
-- every facet that is said again.
DROP INDEX facets_measured;
CREATE INDEX facets_measured ON facets (node, first_at)
    WHERE run <> 0
      AND name IN ('outputStatistics', 'inputStatistics', 'dataQualityMetrics', 'dataQualityAssertions');

UPDATE meta SET projected = 0;            -- so that the catalog is folded again
