"""The command line: one file per family of commands, imported when one of them runs."""
