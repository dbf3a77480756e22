"""Pinned anchors: their values, their store, and the session they belong to."""
