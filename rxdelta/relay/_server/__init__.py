"""The relay's logs on a Valkey or Redis server, which all processes that know its URL share."""
