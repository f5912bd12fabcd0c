"""ma_e9s12, one multiplication and addition of E9S12 halves, which dpa_e9s12 is made of."""
