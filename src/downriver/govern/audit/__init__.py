"""The log anchored in other places, and the audit log as files."""
