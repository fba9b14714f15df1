"""Where changes come from: DDL, a request, or the files of two commits."""
