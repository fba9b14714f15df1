-- The nodes that a batch mentions, so that only these are rendered again.
ALTER TABLE changes ADD COLUMN nodes BYTEA NOT NULL DEFAULT ''::bytea;
