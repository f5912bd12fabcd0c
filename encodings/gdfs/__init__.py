"""gdfs: a folder of its own."""
