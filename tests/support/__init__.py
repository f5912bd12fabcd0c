"""References that several tests use: units and cases at random, comparisons, what was proved before."""
