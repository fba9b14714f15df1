"""Routes of checks, contracts, evidence, checkpoints, privacy and triggers."""
