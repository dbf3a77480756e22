"""Properties of the engine have no deadline: some write files, and other work may hold the machine up."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("engine", deadline=None)
settings.load_profile("engine")
