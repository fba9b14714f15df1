"""Other systems: capture from them, and the events received from each."""
