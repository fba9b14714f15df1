"""Other systems: capture from them, and what was received."""
