"""Tools: running a reply's calls while it streams, and waiting for their end."""
