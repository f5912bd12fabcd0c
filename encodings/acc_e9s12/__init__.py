"""acc_e9s12: a folder of its own."""
