"""Results of tools that check data: Great Expectations, Soda, Deequ."""
