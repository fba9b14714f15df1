-- The log: append-only, every entry chained to the one before it.
CREATE TABLE log (
    seq         INTEGER PRIMARY KEY,
    digest      BLOB    NOT NULL UNIQUE,  -- SHA-256 of the event as sent
    received_at INTEGER NOT NULL,         -- µs since the epoch
    chain       BLOB    NOT NULL,         -- SHA-256 over the previous chain, seq, received_at, digest
    body        BLOB    NOT NULL          -- the event as sent, zstd
);
CREATE TRIGGER log_is_append_only_update BEFORE UPDATE ON log
    BEGIN SELECT raise(ABORT, 'the log is append-only'); END;
CREATE TRIGGER log_is_append_only_delete BEFORE DELETE ON log
    BEGIN SELECT raise(ABORT, 'the log is append-only'); END;

-- One row. `generation` changes when projections are rebuilt, so that caches of ids are dropped.
CREATE TABLE meta (
    generation INTEGER NOT NULL,
    projected  INTEGER NOT NULL           -- the last log entry that is folded into what follows
);
INSERT INTO meta VALUES (1, 0);

-- Projections. All below can be dropped and folded again from the log.
CREATE TABLE nodes (
    id INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,                -- 0 dataset, 1 job
    namespace TEXT NOT NULL, name TEXT NOT NULL,
    short TEXT NOT NULL,                  -- last part of the name, case folded: what people type
    first_at INTEGER NOT NULL, first_event BLOB NOT NULL,
    last_at INTEGER NOT NULL, last_event BLOB NOT NULL,
    observed INTEGER NOT NULL,
    UNIQUE (kind, namespace, name)
);
CREATE INDEX nodes_by_short ON nodes (short);

CREATE TABLE columns (
    id INTEGER PRIMARY KEY,
    dataset INTEGER NOT NULL, field TEXT NOT NULL,
    UNIQUE (dataset, field)
);

CREATE TABLE edges (
    id INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL, source INTEGER NOT NULL, target INTEGER NOT NULL,
    via INTEGER NOT NULL,                 -- the job that stated a dataset-to-dataset edge, or 0
    first_at INTEGER NOT NULL, first_event BLOB NOT NULL,
    last_at INTEGER NOT NULL, last_event BLOB NOT NULL,
    observed INTEGER NOT NULL,
    changed INTEGER NOT NULL,             -- the log entry that last touched this row
    UNIQUE (kind, source, target, via)
);
CREATE INDEX edges_by_change ON edges (changed);

CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    job INTEGER NOT NULL, run TEXT NOT NULL,
    tier INTEGER NOT NULL, state INTEGER NOT NULL, state_at INTEGER NOT NULL,
    started_at INTEGER,
    first_at INTEGER NOT NULL, first_event BLOB NOT NULL,
    last_at INTEGER NOT NULL, last_event BLOB NOT NULL,
    observed INTEGER NOT NULL,
    UNIQUE (job, run)
);

CREATE TABLE bodies (
    digest BLOB PRIMARY KEY,
    body   BLOB NOT NULL                  -- a facet as sent, zstd when that is shorter
) WITHOUT ROWID;

CREATE TABLE facets (
    role INTEGER NOT NULL,                -- 0 of a node, 1 of a run, 2 of an input, 3 of an output
    node INTEGER NOT NULL, run INTEGER NOT NULL,
    name TEXT NOT NULL, digest BLOB NOT NULL,
    first_at INTEGER NOT NULL, first_event BLOB NOT NULL,
    last_at INTEGER NOT NULL, last_event BLOB NOT NULL,
    observed INTEGER NOT NULL,
    PRIMARY KEY (node, role, name, run, digest)
) WITHOUT ROWID;

CREATE TABLE claims (
    id INTEGER PRIMARY KEY,
    job INTEGER NOT NULL,                 -- 0 when the dataset itself says so
    dataset INTEGER NOT NULL, facet TEXT NOT NULL, digest BLOB NOT NULL,
    first_at INTEGER NOT NULL, first_event BLOB NOT NULL,
    last_at INTEGER NOT NULL, last_event BLOB NOT NULL,
    observed INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    UNIQUE (job, dataset, facet, digest)
);
CREATE INDEX claims_by_change ON claims (changed);

-- The column edges of a claim. They never change: another facet is another claim.
CREATE TABLE derives (
    id INTEGER PRIMARY KEY,
    claim INTEGER NOT NULL, source INTEGER NOT NULL, target INTEGER NOT NULL,
    direct INTEGER NOT NULL, subtype TEXT NOT NULL, description TEXT NOT NULL,
    masking INTEGER NOT NULL, confidence TEXT NOT NULL
);
