"""A reply's tool calls: run while it streams, and waited for."""
