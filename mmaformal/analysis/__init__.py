"""Error analysis: formats as arithmetic, rounding and scaling, and what a whole product on a unit is off at most."""
