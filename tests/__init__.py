"""The tests. A package, so that `bench` can borrow `tests.postgres`."""
