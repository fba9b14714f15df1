"""Manual registrations, and lists of the content of a store."""
