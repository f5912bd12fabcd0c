"""emulated: a folder of its own."""
