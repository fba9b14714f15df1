-- Runs keep the version of each dataset that they read and wrote.
UPDATE meta SET projected = 0;            -- so that the catalog is folded again
