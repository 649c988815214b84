"""Folding: events → snapshots, and the message at the end. `validate` checks the protocol first."""
