"""SQL text: tokens, statements, rewriting, parsing, dialects."""
