"""Asking solvers, and what they answer."""
