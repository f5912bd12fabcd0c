"""ffma: a folder of its own."""
