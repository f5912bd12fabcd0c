"""pfma: a folder of its own."""
