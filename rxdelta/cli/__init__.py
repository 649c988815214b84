"""The command `rxdelta`, and what it draws a reply with."""

from rxdelta.cli.main import main
from rxdelta.cli.view import picture
from rxdelta.core import visible

__all__ = ["main", "picture", "visible"]
