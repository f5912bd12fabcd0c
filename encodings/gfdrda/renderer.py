"""A step of gfdrda is told as one of fdrda."""
