"""Whether a relay's store is right: the laws of `rxdelta.relay.Store`, each a check, and runs with faults."""
