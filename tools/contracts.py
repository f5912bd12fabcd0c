"""Contracts of import-linter that see each file of an algorithm's folder in the room of its kind.

`encodings/fda` has files of several rooms: its SMT encoding stands below the proofs of fda beside it.  So a contract
about rooms takes `mmaformal.encodings.fda.proofs` to be `mmaformal.facts.fda`, and so on; it is import-linter's own
otherwise.
"""

from __future__ import annotations

import grimp
from importlinter import ContractCheck
from importlinter.contracts.acyclic_siblings import AcyclicSiblingsContract
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.layers import LayersContract

#: The room of each part of an algorithm's folder.
ROOMS = {
    "": "mmaformal.parameters",
    "smt": "mmaformal.encodings.smt",
    "executable": "mmaformal.encodings.executable",
    "space": "mmaformal.spaces",
    "renderer": "mmaformal.renderers",
    "kernel": "mmaformal.kernels",
    "proofs": "mmaformal.facts",
}
_FOLDERS = "mmaformal.encodings."


def room_of(module: str) -> str:
    """Return the name that a module would have in the room of its kind."""
    name, _, rest = module.removeprefix(_FOLDERS).partition(".")
    if not module.startswith(_FOLDERS) or name in ("executable", "smt"):
        return module
    part, _, inner = rest.partition(".")
    return ".".join(filter(None, (ROOMS[part], name, inner)))


def by_room(graph: grimp.ImportGraph) -> grimp.ImportGraph:
    """Return the graph of the same imports, of modules by their rooms."""
    made = grimp.ImportGraph()
    for module in {*map(room_of, graph.modules), *ROOMS.values()}:
        made.add_module(module)
    for importer in graph.modules:
        for imported in graph.find_modules_directly_imported_by(importer):
            for each in graph.get_import_details(importer=importer, imported=imported):
                made.add_import(
                    importer=room_of(importer),
                    imported=room_of(imported),
                    line_number=each["line_number"],
                    line_contents=each["line_contents"],
                )
    return made


class LayersByRoom(LayersContract):
    """The contract `layers`, of rooms."""

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:
        return super().check(by_room(graph), verbose)


class AcyclicByRoom(AcyclicSiblingsContract):
    """The contract `acyclic_siblings`, of rooms."""

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:
        return super().check(by_room(graph), verbose)


class ForbiddenByRoom(ForbiddenContract):
    """The contract `forbidden`, of rooms."""

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:
        return super().check(by_room(graph), verbose)
