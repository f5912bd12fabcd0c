"""Apple AMX: a folder of its own."""
