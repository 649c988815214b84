"""What a stream did, for logs, metrics and traces. The values pass unchanged."""
