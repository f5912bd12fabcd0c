"""E9S12: claims about its dot product-add of halves and about its sums of terms (docs/e9s12.md)."""
