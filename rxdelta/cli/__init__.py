"""The command line: parses arguments and calls the other rooms."""

from rxdelta.cli._main import main
from rxdelta.cli._view import picture

__all__ = ["main", "picture"]
