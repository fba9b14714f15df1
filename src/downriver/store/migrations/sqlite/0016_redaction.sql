-- Within a redaction, the bodies of entries may change. Their hashes and the chain never do.
ALTER TABLE meta ADD COLUMN redacting INTEGER NOT NULL DEFAULT 0;
DROP TRIGGER log_is_append_only_update;
CREATE TRIGGER log_keeps_its_chain BEFORE UPDATE OF seq, digest, received_at, chain ON log
    BEGIN SELECT raise(ABORT, 'the log is append-only'); END;
CREATE TRIGGER log_is_append_only_update BEFORE UPDATE OF body ON log
    WHEN (SELECT redacting FROM meta) = 0
    BEGIN SELECT raise(ABORT, 'the log is append-only'); END;
