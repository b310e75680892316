"""Proofs about decision tables: exact answers about everything that they can be asked, each with a witness."""
