"""The edges of a pipeline: bytes → chunks → events at one end, events → frames → bytes at the other."""
