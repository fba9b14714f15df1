-- Text is compared byte by byte (COLLATE "C"), as in SQLite: the same order on every server.

-- The log: append-only, every entry chained to the one before it.
CREATE TABLE log (
    seq         BIGINT PRIMARY KEY,
    digest      BYTEA   NOT NULL UNIQUE,  -- SHA-256 of the event as sent
    received_at BIGINT NOT NULL,         -- µs since the epoch
    chain       BYTEA   NOT NULL,         -- SHA-256 over the previous chain, seq, received_at, digest
    body        BYTEA   NOT NULL          -- the event as sent, zstd
);
CREATE FUNCTION refuse_log_change() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'the log is append-only'; END $$;
CREATE TRIGGER log_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_log_change();
ALTER TABLE log ALTER COLUMN body SET STORAGE EXTERNAL;  -- it is compressed already

-- One row. `generation` changes when projections are rebuilt, so that caches of ids are dropped.
CREATE TABLE meta (
    generation INTEGER NOT NULL,
    projected  BIGINT NOT NULL           -- the last log entry that is folded into what follows
);
INSERT INTO meta VALUES (1, 0);

-- Whoever listens hears of every commit that changes where the store stands.
CREATE FUNCTION announce_change() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_notify('downriver_changed', ''); RETURN NULL; END $$;
CREATE TRIGGER meta_change_is_announced AFTER UPDATE ON meta
    FOR EACH STATEMENT EXECUTE FUNCTION announce_change();

-- Projections. All below can be dropped and folded again from the log.
CREATE TABLE nodes (
    id INTEGER PRIMARY KEY,
    kind SMALLINT NOT NULL,                -- 0 dataset, 1 job
    namespace TEXT COLLATE "C" NOT NULL, name TEXT COLLATE "C" NOT NULL,
    short TEXT COLLATE "C" NOT NULL,                  -- last part of the name, case folded: what people type
    first_at BIGINT NOT NULL, first_event BYTEA NOT NULL,
    last_at BIGINT NOT NULL, last_event BYTEA NOT NULL,
    observed SMALLINT NOT NULL,
    UNIQUE (kind, namespace, name)
);
CREATE INDEX nodes_by_short ON nodes (short);

CREATE TABLE columns (
    id INTEGER PRIMARY KEY,
    dataset INTEGER NOT NULL, field TEXT COLLATE "C" NOT NULL,
    UNIQUE (dataset, field)
);

CREATE TABLE edges (
    id INTEGER PRIMARY KEY,
    kind SMALLINT NOT NULL, source INTEGER NOT NULL, target INTEGER NOT NULL,
    via INTEGER NOT NULL,                 -- the job that stated a dataset-to-dataset edge, or 0
    first_at BIGINT NOT NULL, first_event BYTEA NOT NULL,
    last_at BIGINT NOT NULL, last_event BYTEA NOT NULL,
    observed SMALLINT NOT NULL,
    changed BIGINT NOT NULL,             -- the log entry that last touched this row
    UNIQUE (kind, source, target, via)
);
CREATE INDEX edges_by_change ON edges (changed);

CREATE TABLE runs (
    id BIGINT PRIMARY KEY,
    job INTEGER NOT NULL, run TEXT COLLATE "C" NOT NULL,
    tier SMALLINT NOT NULL, state SMALLINT NOT NULL, state_at BIGINT NOT NULL,
    started_at BIGINT,
    first_at BIGINT NOT NULL, first_event BYTEA NOT NULL,
    last_at BIGINT NOT NULL, last_event BYTEA NOT NULL,
    observed SMALLINT NOT NULL,
    UNIQUE (job, run)
);

CREATE TABLE bodies (
    digest BYTEA PRIMARY KEY,
    body   BYTEA NOT NULL                  -- a facet as sent, zstd when that is shorter
);
ALTER TABLE bodies ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE facets (
    role SMALLINT NOT NULL,                -- 0 of a node, 1 of a run, 2 of an input, 3 of an output
    node INTEGER NOT NULL, run BIGINT NOT NULL,
    name TEXT COLLATE "C" NOT NULL, digest BYTEA NOT NULL,
    first_at BIGINT NOT NULL, first_event BYTEA NOT NULL,
    last_at BIGINT NOT NULL, last_event BYTEA NOT NULL,
    observed SMALLINT NOT NULL,
    PRIMARY KEY (node, role, name, run, digest)
);

CREATE TABLE claims (
    id INTEGER PRIMARY KEY,
    job INTEGER NOT NULL,                 -- 0 when the dataset itself says so
    dataset INTEGER NOT NULL, facet TEXT COLLATE "C" NOT NULL, digest BYTEA NOT NULL,
    first_at BIGINT NOT NULL, first_event BYTEA NOT NULL,
    last_at BIGINT NOT NULL, last_event BYTEA NOT NULL,
    observed SMALLINT NOT NULL,
    changed BIGINT NOT NULL,
    UNIQUE (job, dataset, facet, digest)
);
CREATE INDEX claims_by_change ON claims (changed);

-- The column edges of a claim. They never change: another facet is another claim.
CREATE TABLE derives (
    id BIGINT PRIMARY KEY,
    claim INTEGER NOT NULL, source INTEGER NOT NULL, target INTEGER NOT NULL,
    direct SMALLINT NOT NULL, subtype TEXT COLLATE "C" NOT NULL, description TEXT COLLATE "C" NOT NULL,
    masking SMALLINT NOT NULL, confidence TEXT COLLATE "C" NOT NULL
);
