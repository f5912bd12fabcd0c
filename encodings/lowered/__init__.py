"""A PTX instruction that the compiler lowers to several: a folder of its own."""
