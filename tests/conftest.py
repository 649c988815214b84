"""For all tests: time decides nothing, so a slow machine makes no property fail."""

from hypothesis import settings

settings.register_profile("rxdelta", deadline=None)
settings.load_profile("rxdelta")
