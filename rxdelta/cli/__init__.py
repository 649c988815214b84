"""The command line: parses arguments and calls the other rooms."""

from rxdelta.cli._main import main

__all__ = ["main"]
