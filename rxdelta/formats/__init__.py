"""Every wire format, a folder each, with all that is known of it; beside them what they share. No I/O."""
