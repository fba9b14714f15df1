"""Bronze: events as they were sent, from files, Kafka and the server's log."""
