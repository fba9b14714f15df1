"""Facts folded from events, and the silver tables derived from them."""
