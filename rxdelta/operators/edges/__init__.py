"""Where a stream comes in and goes out: bytes → chunks → events, events → frames → bytes."""
