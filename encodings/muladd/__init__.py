"""muladd: a folder of its own."""
