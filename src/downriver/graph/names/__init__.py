"""Names that people and code write, resolved to catalog ids, and ids shortened for people."""
