"""What a session leaves behind: brief, digest, envelope and manifest, composed and verified by pure functions.

Nothing here reads a clock, a file or the environment: times, ids and keys are arguments, so that the same input gives
the same bytes. docs/design.md.
"""
