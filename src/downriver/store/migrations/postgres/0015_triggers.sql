-- Actions that triggers started. Not a projection: the log does not say what was done about a finding.
CREATE TABLE triggered (
    id       BIGINT PRIMARY KEY,
    trigger_name TEXT NOT NULL,
    target   TEXT NOT NULL,
    state    TEXT NOT NULL,
    due_at   BIGINT NOT NULL,             -- not before: the next try, or the end of the lease
    body     BYTEA NOT NULL                -- the action, JSON
);
CREATE INDEX triggered_by_target ON triggered (trigger_name, target, id);
CREATE INDEX triggered_by_state ON triggered (state, due_at);
