"""Formats and files shared by hooks and the slower rooms."""
