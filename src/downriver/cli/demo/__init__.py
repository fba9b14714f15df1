"""The demo: its command and its screens."""
