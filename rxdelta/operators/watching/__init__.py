"""Watching: logs, metrics and traces of a stream, whose values pass unchanged."""
