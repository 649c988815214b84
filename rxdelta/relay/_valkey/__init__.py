"""The relay's store on Valkey or Redis."""
