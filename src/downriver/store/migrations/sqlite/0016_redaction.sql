-- Within a redaction, the bodies of entries may change. Their hashes and the chain never do.
ALTER TABLE meta ADD COLUMN redacting INTEGER NOT NULL DEFAULT 0;
DROP TRIGGER log_is_append_only_update;
CREATE TRIGGER log_is_append_only_update BEFORE UPDATE ON log
    WHEN (SELECT redacting FROM meta) = 0 OR NEW.seq <> OLD.seq OR NEW.digest <> OLD.digest
        OR NEW.received_at <> OLD.received_at OR NEW.chain <> OLD.chain
    BEGIN SELECT raise(ABORT, 'the log is append-only'); END;
