"""A step of gfdrda is told as one of fdrda."""

from mmaformal.tellers.fdrda import tell as tell
