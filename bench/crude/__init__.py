"""A crude reader of names in I/O positions: regular expressions only, nothing of the product."""
