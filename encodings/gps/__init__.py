"""gps: a folder of its own."""
