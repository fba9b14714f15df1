-- The nodes that a batch mentions, so that only these are rendered again.
ALTER TABLE changes ADD COLUMN nodes BLOB NOT NULL DEFAULT x'';
