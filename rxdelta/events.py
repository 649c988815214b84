"""The events of a streamed reply: the chat stream event protocol, and four events of our own.

Every event is a small frozen value. Its fields have the wire's names in snake case; `to_dict` writes the wire form
and `from_dict` reads it, in today's spelling or an older one. `choice` distinguishes alternative replies of one
stream; the wire form omits it where it is 0.
"""

from rxdelta.core.events import *  # noqa: F403
from rxdelta.core.events import __all__ as __all__
