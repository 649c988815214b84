"""The relay's store on Valkey or Redis.

`store` answers by `scripts`, which run on the server, and by the blocking read of `hub`. `connections` sends the `calls` that
wait together over `lines`, to where `urls` says. `calls` and `connections` import each other, one of
them for type checkers alone: the calls to a node ask their owner for a line.
"""
