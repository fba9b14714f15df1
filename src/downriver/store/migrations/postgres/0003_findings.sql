-- What the monitor found, and whom it has still to tell. Not a projection: the log knows what
-- happened, not who was told of it.
CREATE TABLE findings (
    id         TEXT PRIMARY KEY,
    kind       TEXT NOT NULL,
    entity     TEXT NOT NULL,
    severity   INTEGER NOT NULL,
    status     TEXT NOT NULL,             -- open or resolved
    first_at   BIGINT NOT NULL,          -- µs since the epoch, as all times here
    changed_at BIGINT NOT NULL,
    body       BYTEA NOT NULL              -- the whole finding, JSON
);
CREATE INDEX findings_by_change ON findings (status, changed_at);
CREATE INDEX findings_by_entity ON findings (entity);

CREATE TABLE alerts (
    id       BIGINT PRIMARY KEY,
    channel  TEXT NOT NULL,
    due_at   BIGINT NOT NULL,            -- not before: quiet hours, or the next try
    attempts INTEGER NOT NULL,
    error    TEXT NOT NULL,
    body     BYTEA NOT NULL
);
CREATE INDEX alerts_by_channel ON alerts (channel, id);

CREATE TABLE watch_state (
    name TEXT PRIMARY KEY,
    body BYTEA NOT NULL
);

-- A job's last runs and a dataset's last measurements, however many there were before.
CREATE INDEX runs_by_time ON runs (job, first_at);
CREATE INDEX facets_measured ON facets (node, last_at)
    WHERE name IN ('outputStatistics', 'inputStatistics', 'dataQualityMetrics', 'dataQualityAssertions');
