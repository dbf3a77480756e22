"""A project's memory on disk: working state, artifacts, episodes, sessions and the repository map."""
