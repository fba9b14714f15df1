-- Columns and column edges come many at once and never change: a row for all of them, not for each.
DROP TABLE columns;
DROP TABLE derives;

-- The columns that one schema or claim added to a dataset: `first_id` and the `size` - 1 after it.
CREATE TABLE column_sets (
    first_id INTEGER PRIMARY KEY,
    dataset INTEGER NOT NULL,
    size INTEGER NOT NULL,
    named INTEGER NOT NULL,               -- how many of them are not `*`
    fields BYTEA NOT NULL                  -- their names, a JSON array
);
CREATE INDEX column_sets_by_dataset ON column_sets (dataset);

-- The column edges of a claim. They never change: another facet is another claim.
CREATE TABLE derivations (
    claim INTEGER PRIMARY KEY,
    edges BYTEA NOT NULL,                  -- int32: all sources, all targets, of each its place in `kinds`
    kinds BYTEA NOT NULL                   -- JSON array of [direct, subtype, description, masking, confidence]
);

UPDATE meta SET projected = 0;            -- so that the catalog is folded again
