ALTER TABLE api_keys ADD COLUMN namespaces TEXT;    -- patterns, one a line; NULL: every namespace
ALTER TABLE api_keys ADD COLUMN expires_at INTEGER; -- NULL: never

-- Who wrote, who was refused, and what administrators did. Not a projection.
CREATE TABLE audit (
    id        INTEGER PRIMARY KEY,
    actor     TEXT NOT NULL,          -- the name of a key, the subject of a token, or `local`
    action    TEXT NOT NULL,
    target    TEXT NOT NULL,
    detail    TEXT NOT NULL,
    count     INTEGER NOT NULL,       -- equal acts of one minute are one row
    first_at  INTEGER NOT NULL,
    last_at   INTEGER NOT NULL,
    first_seq INTEGER,                -- of the log entries that were written
    last_seq  INTEGER
);
