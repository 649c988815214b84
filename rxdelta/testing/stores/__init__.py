"""Whether a relay's store is right: the laws of `rxdelta.relay.Store`, each a check, and runs with faults.

`check` runs all laws on a `bench`: those of `writing`, `reading` and `lasting`, then `store_runs` and `relay_runs` over the bad
lines of `traced`. `memory_store` is the shortest store that holds them.
"""
