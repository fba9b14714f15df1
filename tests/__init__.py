"""The tests. They are a package, so that `bench` can import `tests.postgres`."""
