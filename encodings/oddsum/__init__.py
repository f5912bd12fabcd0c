"""oddsum: a folder of its own."""
