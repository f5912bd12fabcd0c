"""Proofs: lemmas with cuts, premises, what follows from them, and what every proof of sums has in common."""
