"""Apple AMX: both encodings make the same state of every state, and claims about all operands (docs/apple-amx.md)."""
