"""gfdrda: a folder of its own."""
