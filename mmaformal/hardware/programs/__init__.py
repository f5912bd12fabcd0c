"""Programs as designs: a function in C or LLVM's IR as the bit-vector terms that it computes."""
