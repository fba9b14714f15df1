"""A read-only store on a lake: the server answers from the facts of the lake, without Spark."""
