"""What several tests use: references, units and cases at random, comparisons, what was proved before."""
