"""One source, many readers, also those who come late."""
