"""Pairs of instructions that take the same types, and a store of what is known of each: a file of JSON lines.

Two instructions are compared at the least K that both can be chained to.  There they have one function if they have
one `DotAdd`.  All other pairs are questions; pairs with the same two functions are one question.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from math import lcm
from pathlib import Path

from mmaformal.cases.inputs import Codes, with_products, zeros
from mmaformal.display import ShortRepr
from mmaformal.identity import recorded_name
from mmaformal.instruction import Instruction
from mmaformal.spec import DotAdd, plain_parameter
from mmaformal.witness import Witness


class PairStoreError(ValueError):
    """A line of a store is none of this version; the message says which and why."""


def types_of_pair(spec: DotAdd) -> tuple[object, ...]:
    """The things that two instructions have alike that can be compared: the types of a, b, c, d and of scales."""
    return spec.a_format, spec.b_format, spec.c_format, spec.d_format, spec.scale_format, spec.scale_block


def function_text(spec: DotAdd) -> str:
    """A text that two `DotAdd`s of the tables share exactly if they are equal, by names that later versions keep."""
    types = [
        str(each) for each in (spec.k, *types_of_pair(spec), spec.product_order, spec.negated, spec.reads_c)
    ]
    p = spec.parameters
    given = [f"{recorded_name(each)}={plain_parameter(p[each.name])}" for each in fields(p)]
    return " ".join([*types, p.algorithm, *given])


@dataclass(frozen=True, repr=False)
class FunctionPair(ShortRepr):
    """Two instructions of one K: a question, if their functions are not one."""

    x: Instruction
    y: Instruction

    @property
    def one_function(self) -> bool:
        """Whether both are the same `DotAdd`, which needs no proof."""
        return self.x.spec == self.y.spec

    @property
    def key(self) -> str:
        """A key that is one for every pair of these two functions, in this order or the other."""
        both = sorted((function_text(self.x.spec), function_text(self.y.spec)))
        return hashlib.sha256("\n".join(both).encode()).hexdigest()[:16]


@dataclass(frozen=True, repr=False)
class TwoInstructions(ShortRepr):
    """Two instructions of the tables, and the pair that they are compared as, or why they cannot be."""

    x: Instruction
    y: Instruction
    pair: FunctionPair | None
    why: str = ""  #: why there is no K that both can be chained to


def comparisons(instructions: Sequence[Instruction]) -> list[TwoInstructions]:
    """Every pair of instructions that take the same types, in the order of the tables."""
    found = []
    for x, y in combinations(instructions, 2):
        if types_of_pair(x.spec) != types_of_pair(y.spec):
            continue
        k = lcm(x.k, y.k)
        try:
            found.append(TwoInstructions(x, y, FunctionPair(x.chained(k), y.chained(k))))
        except ValueError as error:
            found.append(TwoInstructions(x, y, None, str(error)))
    return found


def questions(compared: Iterable[TwoInstructions]) -> dict[str, FunctionPair]:
    """The pairs of different functions by their keys; of several with one key, that which is chained least."""
    found: dict[str, FunctionPair] = {}
    for each in compared:
        pair = each.pair
        if pair is None or pair.one_function:
            continue
        key = pair.key
        if key not in found or _chained(pair) < _chained(found[key]):
            found[key] = pair
    return found


def _chained(pair: FunctionPair) -> int:
    return pair.x.issues + pair.y.issues


@dataclass(frozen=True, repr=False)
class PairAnswer(ShortRepr):
    """An answer on a pair of different `DotAdd`s."""

    key: str
    x: str  #: the label that the first had; codes of d are in this order
    y: str
    k: int
    answer: str  #: different, equal or unknown
    codes: Codes | None = None  #: an input on which they differ
    d: tuple[int, int] = (0, 0)  #: what both give
    minimality: tuple[str, ...] = ()  #: what is proved of the input's size, and what is not
    obligations: tuple[str, ...] = ()  #: SHA-256 of the scripts that were refuted
    seconds: float = 0.0
    timeout: float = 0.0  #: what solvers were given; 0 where none was asked
    why: str = ""  #: why it is unknown

    @property
    def smallest(self) -> bool:
        """Whether it is proved that no input is smaller, by every measure."""
        return bool(self.minimality) and all(each.endswith(": proved minimal") for each in self.minimality)

    @property
    def settled(self) -> bool:
        """Whether more time could find no more."""
        return self.answer == "equal" or (self.answer == "different" and self.smallest)

    def witness(self, pair: FunctionPair) -> Witness:
        """The input, run on both models again.  Raises WitnessError where they do not differ any more."""
        assert self.codes is not None
        codes = self.codes
        return Witness.of(pair.x, pair.y, codes.a, codes.b, codes.c, codes.scale_a, codes.scale_b)

    def to_json(self) -> dict[str, object]:
        told: dict[str, object] = {
            "key": self.key,
            "x": self.x,
            "y": self.y,
            "k": self.k,
            "answer": self.answer,
        }
        if self.codes is not None:
            told |= {"input": _sparse(self.codes), "d": [f"{each:#x}" for each in self.d]}
        for name in ("minimality", "obligations"):
            if getattr(self, name):
                told[name] = list(getattr(self, name))
        told |= {"seconds": round(self.seconds, 2), "timeout": self.timeout}
        return told | ({"why": self.why} if self.why else {})

    @staticmethod
    def from_json(told: Mapping[str, object], spec: DotAdd) -> PairAnswer:
        """Read what `to_json` gave, of a pair whose first function is `spec`.  Raises PairStoreError."""
        try:
            x, y = (int(each, 16) for each in _words(told.get("d", ["0", "0"])))
            given = told.get("input")
            return PairAnswer(
                str(told["key"]),
                str(told["x"]),
                str(told["y"]),
                int(str(told["k"])),
                str(told["answer"]),
                codes=_whole(given, spec) if isinstance(given, dict) else None,
                d=(x, y),
                minimality=_words(told.get("minimality")),
                obligations=_words(told.get("obligations")),
                seconds=float(str(told["seconds"])),
                timeout=float(str(told["timeout"])),
                why=str(told.get("why", "")),
            )
        except (KeyError, ValueError, AttributeError) as error:
            raise PairStoreError(f"{told.get('x')} and {told.get('y')}: {error!r}") from None


def _words(told: object) -> tuple[str, ...]:
    return tuple(map(str, told)) if isinstance(told, list) else ()


def _sparse(codes: Codes) -> dict[str, object]:
    """The codes as text, without the products of two codes 0."""
    told: dict[str, object] = {
        "products": {
            str(k): [f"{x:#x}", f"{y:#x}"]
            for k, (x, y) in enumerate(zip(codes.a, codes.b, strict=True))
            if x or y
        },
        "c": f"{codes.c:#x}",
    }
    for side, scales in (("scale_a", codes.scale_a), ("scale_b", codes.scale_b)):
        if scales:
            told[side] = [f"{x:#x}" for x in scales]
    return told


def _whole(told: Mapping[str, object], spec: DotAdd) -> Codes:
    products, none = told["products"], zeros(spec)
    if not isinstance(products, dict):
        raise ValueError("products are by their places")
    pairs = {int(k): (int(x, 16), int(y, 16)) for k, (x, y) in products.items()}
    scale_a, scale_b = (tuple(int(x, 16) for x in _words(told.get(side))) for side in ("scale_a", "scale_b"))
    codes = Codes(none.a, none.b, int(str(told["c"]), 16), scale_a, scale_b)
    return with_products(codes, pairs)


class PairStore:
    """The answers of a file, by keys; each that is added is written at once, so that what is killed can go on."""

    def __init__(self, path: Path, pairs: Mapping[str, FunctionPair]) -> None:
        """Read a file, if it is there; lines about other models than those of `pairs` are left out.

        Raises PairStoreError for what is no line of a store, OSError where it cannot be read.
        """
        self.path = path
        self.answers: dict[str, PairAnswer] = {}
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        for number, line in enumerate(lines, 1):
            try:
                told = json.loads(line)
            except ValueError as error:
                if number == len(lines):
                    continue  # what wrote it was killed
                raise PairStoreError(f"{path}:{number}: {error}") from None
            if isinstance(told, dict) and (pair := pairs.get(str(told.get("key")))) is not None:
                answer = PairAnswer.from_json(told, pair.x.spec)
                self.answers[answer.key] = answer

    def add(self, answer: PairAnswer) -> None:
        """Keep an answer, in place of that of before."""
        self.answers[answer.key] = answer
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_line(answer))

    def tidy(self, order: Iterable[str]) -> None:
        """Write the file anew: a line for each pair, in this order."""
        text = "".join(_line(self.answers[key]) for key in order if key in self.answers)
        self.path.write_text(text, encoding="utf-8")


def _line(answer: PairAnswer) -> str:
    return json.dumps(answer.to_json(), ensure_ascii=False) + "\n"
