-- What each batch touched is one row, not an index on every row that may be touched: most batches see
-- again what is known, and that should change a row and nothing else. With room on its page it is
-- changed where it is, and no index has to hear of it.
CREATE TABLE changes (
    seq    BIGINT PRIMARY KEY,
    edges  BYTEA NOT NULL,                 -- int32: the ids of those it added or touched
    claims BYTEA NOT NULL
);
DROP TABLE edges;
CREATE TABLE edges (
    id INTEGER PRIMARY KEY,
    kind SMALLINT NOT NULL, source INTEGER NOT NULL, target INTEGER NOT NULL,
    via INTEGER NOT NULL,                 -- the job that stated a dataset-to-dataset edge, or 0
    first_at BIGINT NOT NULL, first_event BYTEA NOT NULL,
    last_at BIGINT NOT NULL, last_event BYTEA NOT NULL,
    observed SMALLINT NOT NULL,
    UNIQUE (kind, source, target, via)
) WITH (fillfactor = 50);
DROP TABLE claims;
CREATE TABLE claims (
    id INTEGER PRIMARY KEY,
    job INTEGER NOT NULL,                 -- 0 when the dataset itself says so
    dataset INTEGER NOT NULL, facet TEXT COLLATE "C" NOT NULL, digest BYTEA NOT NULL,
    first_at BIGINT NOT NULL, first_event BYTEA NOT NULL,
    last_at BIGINT NOT NULL, last_event BYTEA NOT NULL,
    observed SMALLINT NOT NULL,
    UNIQUE (job, dataset, facet, digest)
) WITH (fillfactor = 50);

ALTER TABLE nodes SET (fillfactor = 50);
ALTER TABLE facets SET (fillfactor = 70); -- those of runs are said once

-- Measurements of runs by when they were first said: an index by the last time would have to follow
-- every facet that is said again.
DROP INDEX facets_measured;
CREATE INDEX facets_measured ON facets (node, first_at)
    WHERE run <> 0
      AND name IN ('outputStatistics', 'inputStatistics', 'dataQualityMetrics', 'dataQualityAssertions');

UPDATE meta SET projected = 0;            -- so that the catalog is folded again
