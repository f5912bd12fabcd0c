"""Cases of inputs, as codes or as terms: making them, running both encodings on them, making them small."""
