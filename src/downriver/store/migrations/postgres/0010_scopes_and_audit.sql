ALTER TABLE api_keys ADD COLUMN namespaces TEXT;    -- patterns, one a line; NULL: every namespace
ALTER TABLE api_keys ADD COLUMN expires_at BIGINT; -- NULL: never

-- Who wrote, who was refused, and what administrators did. Not a projection.
CREATE TABLE audit (
    id        BIGINT PRIMARY KEY,
    actor     TEXT NOT NULL,          -- the name of a key, the subject of a token, or `local`
    action    TEXT NOT NULL,
    target    TEXT NOT NULL,
    detail    TEXT NOT NULL,
    count     BIGINT NOT NULL,       -- equal acts of one minute are one row
    first_at  BIGINT NOT NULL,
    last_at   BIGINT NOT NULL,
    first_seq BIGINT,                -- of the log entries that were written
    last_seq  BIGINT
);
