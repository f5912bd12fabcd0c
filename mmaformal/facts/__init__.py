"""Facts about each algorithm that proofs need."""
