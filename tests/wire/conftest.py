"""Properties are judged by their results, not by the load of the machine."""

from hypothesis import settings

settings.register_profile("no deadline", deadline=None, max_examples=40)
settings.load_profile("no deadline")
