"""The store of a relay on a server: Valkey or Redis."""
