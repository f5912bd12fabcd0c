"""sfma: a folder of its own."""
