"""Routes of evidence, checkpoints, privacy, redaction and triggers."""
