"""Every property there is, by name."""

from __future__ import annotations

from mmaformal.queries.property import Property

_ALL: tuple[Property, ...] = ()
PROPERTIES: dict[str, Property] = {each.name: each for each in _ALL}
