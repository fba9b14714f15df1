-- Within a redaction, the bodies of entries may change. Their hashes and the chain never do.
ALTER TABLE meta ADD COLUMN redacting SMALLINT NOT NULL DEFAULT 0;
CREATE OR REPLACE FUNCTION refuse_log_change() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN
        IF TG_OP = 'UPDATE' AND (SELECT redacting FROM meta) = 1 THEN RETURN NULL; END IF;
        RAISE EXCEPTION 'the log is append-only';
    END $$;
CREATE FUNCTION refuse_chain_change() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'the log is append-only'; END $$;
CREATE TRIGGER log_keeps_its_chain BEFORE UPDATE OF seq, digest, received_at, chain ON log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_chain_change();
