"""The Claude Code client, driven headless against a stub Messages API."""
