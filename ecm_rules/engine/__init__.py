"""Snapshot in, verdict out. `program` is the interpreter of the hot path; the rest is the façade around it."""
