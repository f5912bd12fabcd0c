"""efda: a folder of its own."""
