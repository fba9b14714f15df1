"""The agent without a language model: fixed rules over the same tools."""
