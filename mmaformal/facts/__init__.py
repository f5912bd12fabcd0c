"""What proofs need to know of each algorithm."""
