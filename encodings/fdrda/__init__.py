"""fdrda: a folder of its own."""
