-- Who may use the server. Not a projection: keys are no lineage and do not come from the log.
CREATE TABLE api_keys (
    name       TEXT PRIMARY KEY,
    role       TEXT NOT NULL,
    digest     BYTEA NOT NULL UNIQUE,      -- SHA-256 of the key, which itself is never stored
    created_at BIGINT NOT NULL,
    revoked_at BIGINT
);
