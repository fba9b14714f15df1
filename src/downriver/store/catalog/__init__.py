"""The catalog: tables projected from the log, how facts become rows, and how rows are read."""
