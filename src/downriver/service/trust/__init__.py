"""Parts of the façade about trust: checks, evidence, checkpoints of the log."""
