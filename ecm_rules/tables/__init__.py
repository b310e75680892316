"""YAML text in, located and validated immutable models out. Imports nothing of the package above it."""
