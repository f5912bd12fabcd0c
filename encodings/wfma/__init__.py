"""wfma: a folder of its own."""
