"""gfda: a folder of its own."""
