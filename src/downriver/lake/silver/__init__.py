"""Facts folded from events, and silver tables made from them."""
