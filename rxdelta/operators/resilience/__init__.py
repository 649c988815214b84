"""When a stream breaks, stalls, or is stopped."""
