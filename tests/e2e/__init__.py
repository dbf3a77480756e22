"""Tests that drive real hosts against a stub model on loopback."""
