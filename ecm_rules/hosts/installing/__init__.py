"""Wiring a client in a project and taking it out again: files of others are edited in place. docs/install.md."""
