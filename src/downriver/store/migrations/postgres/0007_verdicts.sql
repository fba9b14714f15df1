-- Verdicts of the gate. Not a projection: the log has no changes that were only proposed.
CREATE TABLE verdicts (
    id       TEXT PRIMARY KEY,
    at       BIGINT NOT NULL,          -- µs since the epoch
    decision TEXT NOT NULL,
    body     BYTEA NOT NULL              -- the recorded verdict, JSON
);
CREATE INDEX verdicts_by_time ON verdicts (at);
