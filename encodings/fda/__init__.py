"""fda: a folder of its own."""
