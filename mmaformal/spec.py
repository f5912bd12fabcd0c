"""A matrix unit's computation as data: an algorithm's name, its parameters and its types.  No arithmetic.

Every element of D is one *dot product-add*, `d = c + Σ a_k·b_k`.  A `DotAdd` says how it is rounded, and is
all that the two encodings (`encodings/smt`, `encodings/executable`) know: not which GPU it came from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from enum import Enum
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypeVar

from mmaformal.checked import integer, some_text, truth
from mmaformal.display import LINE, clipped
from mmaformal.formats import Format, Specials
from mmaformal.losses import Flushing as Flushing
from mmaformal.losses import LossModel as LossModel
from mmaformal.renamed import new_names
from mmaformal.rounding import Conversion, NanRule, Rounding, Tininess
from mmaformal.summation import Node

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Data = TypeVar("_Data", bound="DataclassInstance")


def integers(value: object, name: str) -> tuple[int, ...]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(f"{name} is a sequence of integers, not {value!r}")
    if type(value) is tuple and set(map(type, value)) <= {int}:  # so are most, of many thousand models
        return value
    return tuple(integer(each, f"each of {name}") for each in value)


def _dot_add(value: object, name: str) -> DotAdd:
    if not isinstance(value, DotAdd):
        raise TypeError(f"{name} is a DotAdd, not {value!r}")
    return value


#: some of a, c and d
Letters: TypeAlias = str


def _letters(value: object, name: str) -> str:
    """Letters of "acd", each once and in their order.  Raises TypeError, ValueError."""
    if not isinstance(value, str):
        raise TypeError(f"{name} are letters of 'acd', not {value!r}")
    if not set(value) <= set("acd"):
        raise ValueError(f"{name} are some of a, c and d, not {value!r}")
    return "".join(sorted(set(value)))


def _parameters(value: object, name: str) -> Parameters:
    if not isinstance(value, Parameters) or type(value) is Parameters:
        raise TypeError(f"{name} are those of an algorithm, as Fda, not {value!r}")
    return value


#: what makes a value of a field's type, or says why it is none
_KINDS: dict[str, Callable[[object, str], object]] = {
    "int": integer,
    "bool": truth,
    "str": some_text,
    "Letters": _letters,
    "tuple[int, ...]": integers,
    "Rounding": Rounding.named,
    "NanRule": NanRule.named,
    "Tininess": Tininess.named,
    "Conversion": Conversion.named,
    "Format": Format.named,
    "Parameters": _parameters,
    "DotAdd": _dot_add,
}


def _settle(data: DataclassInstance) -> None:
    """Make the fields of a frozen dataclass what their types say, from names and NumPy's integers too.

    Raises TypeError, ValueError.
    """
    for name, settled, optional in _kinds(type(data)):
        value = getattr(data, name)
        if (value is not None or not optional) and (made := settled(value, name)) is not value:
            object.__setattr__(data, name, made)


@lru_cache(maxsize=64)
def _kinds(of: type[DataclassInstance]) -> tuple[tuple[str, Callable[[object, str], object], bool], ...]:
    """Return of each field its name, what makes a value of its type, and whether it may be None."""
    told = ((each.name, *str(each.type).partition(" | ")) for each in fields(of))
    makers = _KINDS | dict(of.kinds if issubclass(of, Parameters) else {})
    return tuple((name, makers[kind], bool(optional)) for name, kind, _, optional in told)


_field_names: dict[object, tuple[str, ...]] = {}


def _names(of: type[DataclassInstance]) -> tuple[str, ...]:
    """Return the names of a dataclass' fields; `fields` looks at all that it has every time."""
    if of not in _field_names:
        _field_names[of] = tuple(each.name for each in fields(of))
    return _field_names[of]


def with_changes(data: _Data, changes: Mapping[str, object]) -> _Data:
    """Return a copy with other fields, each made into what its type says."""
    return replace(data, **changes)


@dataclass(frozen=True, repr=False)
class Parameters:
    """Parameters of an algorithm; readable as attributes and, like a mapping, by name.

    Each class raises ValueError for numbers that make no sense or do not fit the encodings, TypeError for what is no
    number.  Conversions, formats and roundings may be given by name.
    """

    algorithm: ClassVar[str]
    summary: ClassVar[str]
    #: whether a and b may have block scales
    takes_scales: ClassVar[bool] = False
    #: whether its rule is IEEE 754's or correct rounding, so that exact rational arithmetic can say what is right
    rounds_correctly: ClassVar[bool] = False
    #: whether terms are aligned for good, and may lose bits before their sum is rounded
    aligns: ClassVar[bool] = False
    #: what a step loses before it rounds
    loss: ClassVar[LossModel]
    #: whether results may be of the formats of P3109, which overflow by a saturation mode
    saturates: ClassVar[bool] = False
    #: whether results may be of e4m3, which overflows so too
    gives_e4m3: ClassVar[bool] = False
    #: whether results of IEEE 754's formats may overflow to the largest number, to nearest (`Saturation.PROPAGATE`)
    gives_largest: ClassVar[bool] = False
    #: whether results, and perhaps operands, are integers
    is_integer: ClassVar[bool] = False
    #: whether its sum is rounded with all its bits, so that ρ may be stochastic
    rounds_randomly: ClassVar[bool] = False
    #: whether no unit is known to have it: it is looked for where it is named, and not by default
    is_design: ClassVar[bool] = False
    #: whether a step is a fused multiply-add whose exceptions are known (`fma_flags`)
    has_flags: ClassVar[bool] = False
    #: whether it is a program over another instruction
    is_program: ClassVar[bool] = False
    #: what a parameter is, in words, where it is this algorithm's own or not what it is elsewhere
    meanings: ClassVar[Mapping[str, str]] = {}
    #: old names of parameters, taken for one version more, and the new ones
    renamed: ClassVar[Mapping[str, str]] = {}
    #: what makes a value of a type that only this algorithm's parameters have, as `_KINDS`
    kinds: ClassVar[Mapping[str, Callable[[object, str], object]]] = {}

    def __post_init__(self) -> None:
        _settle(self)

    def keys(self) -> tuple[str, ...]:
        return _names(type(self))

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def __getitem__(self, name: str) -> object:
        if name in self.renamed:
            (name,) = new_names({name: None}, self.renamed, self.algorithm)
        if name not in self.keys():
            raise KeyError(f"{self.algorithm} has no parameter {name!r}: it has {', '.join(self.keys())}")
        return getattr(self, name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {clipped(self.describe(), 2 * LINE)}>"

    def describe(self) -> str:
        """`F=24 L=8 ρ=RZ-FP32 e_zero=-132`; a parameter that has a default is named where it differs."""
        shown = (f.name for f in fields(self) if f.default is MISSING or getattr(self, f.name) != f.default)
        return " ".join(
            f"{'ρ' if name == 'rho' else name}={parameter_text(self[name], name)}" for name in shown
        )

    @property
    def step_products(self) -> int:
        """How many products one step of the algorithm takes; a greater K is a chain of steps."""
        L = self["L"]
        assert isinstance(L, int)
        return L

    @property
    def nan_is_canonical(self) -> bool:
        """Whether the code of a NaN result is known; if not, its payload is left open, and only "a NaN" is modelled."""
        return "nan" in self and self["nan"] is not NanRule.ANY

    @property
    def factors_commute(self) -> bool:
        """Whether b·a gives the codes of a·b, those of NaNs too, so that a product may be made as its transpose."""
        return False

    def check(self, spec: DotAdd) -> None:
        """Raise ValueError if these parameters make no sense with the types of `spec`."""

    # What is known of an algorithm without a proof; that products of a class may change places is proved of each model.

    def class_of(self, k: int) -> Hashable:
        """The class of the k-th product of a chain: those of one class are added in no order of their own.

        Within a step of a fused algorithm products enter only a maximum and an exact sum, so these are one class.
        """
        return k // self.step_products

    @property
    def last_rounding(self) -> Conversion:
        """The rounding that a result has gone through last."""
        rho = self["rho"]
        assert isinstance(rho, Conversion)
        return rho

    @property
    def product_rounding(self) -> Conversion | None:
        """How each product is rounded before it is added; None for an algorithm that rounds none alone."""
        return None

    def sum_bounds(self, spec: DotAdd) -> list[int] | None:
        """The largest magnitudes of the aligned terms of a step's first fixed-point sum; None if it has no such sum."""
        return None

    def keeps(self, spec: DotAdd) -> str:
        """Say in words what the accumulator keeps of its terms: how the sentence "the accumulator …" goes on."""
        raise NotImplementedError

    def shorter(self, spec: DotAdd) -> tuple[DotAdd, tuple[int, ...]] | None:
        """The specification with one product less in each step, and the places of those; None if there is none."""
        return None

    def _one_less(self, spec: DotAdd, group: int, **less: int) -> tuple[DotAdd, tuple[int, ...]]:
        """Return a specification where each `group` of consecutive products loses its last, and the products lost."""
        last = tuple(range(group - 1, spec.k, group))
        if spec.scale_format is not None:
            less["scale_block"] = spec.scale_block // group * (group - 1)
        return spec.replace(k=spec.k - len(last), **less), last

    @property
    def sum_places(self) -> int:
        """Fractional places, below the largest exponent, of the sum that is rounded; of what `aligns`."""
        F = self["F"]
        assert isinstance(F, int)
        return F

    def taken(self, k: int) -> list[int]:
        """The places of k products, in the order in which steps take them."""
        return list(range(k))

    @property
    def subtracts_products(self) -> bool:
        """Return whether the exact sum is c − Σ a·b."""
        return False

    @property
    def group(self) -> int:
        """Return how many products of a step are one term, their exact sum."""
        return 1

    @property
    def cuts_to_odd(self) -> bool:
        """Return whether terms are cut to odd where they are aligned."""
        return "cut" in self and self["cut"] is Rounding.RO

    @property
    def flushing(self) -> Flushing | None:
        """Return a product's roundings, if subnormal operands and results count as zero; None if they do not."""
        return None

    @property
    def first_nan(self) -> str:
        """Return in which order of operands the first NaN is the result, made quiet; nothing if that is no rule."""
        return ""

    def kept_places(self, spec: DotAdd) -> int:
        """Return how many fractional places a term keeps below the largest exponent; of what `aligns`."""
        F = self["F"]
        assert isinstance(F, int)
        return F

    def loses_no_product(self, spec: DotAdd) -> bool:
        """Return whether the accumulator holds every sum of products, to the last place of the least."""
        return False

    def zero_exponent(self, spec: DotAdd) -> int | None:
        """Return the exponent that a term of zero has where terms are aligned; None where it has none."""
        if "e_zero" not in self:
            return None
        named = self["e_zero"]
        least = spec.a_format.min_exponent + spec.b_format.min_exponent
        return named if isinstance(named, int) else max(least, spec.c_format.min_exponent)

    def sum_tree(self, spec: DotAdd, before: Node | int, places: list[int]) -> Node:
        """Return the sums of one step, of what came before it and of the products of these places."""
        return Node((before, *places))

    def datapath(self, spec: DotAdd) -> tuple[str, dict[str, object]] | None:
        """Return the organisation of TensorGauge's paper that this is, and its arguments; None if it is none."""
        return None

    def ieee_name(self, spec: DotAdd) -> str:
        """Return what this is called if IEEE 754 defines all of it, whoever has it; else nothing."""
        return ""

    def made_of(self, spec: DotAdd) -> DotAdd | None:
        """The steps that one step is made of, where those are another algorithm's."""
        return None

    #: what `sum_bounds` are of
    summed: ClassVar[str] = "the exact sum of what is kept"

    def needs(self, condition: bool, what: str) -> None:
        if not condition:
            raise ValueError(f"{self.algorithm} needs {what}")


def plain_parameter(value: object) -> int | float | str | None:
    """A parameter's value for JSON: a rounding, or a rule, by its name."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, DotAdd) or (isinstance(value, tuple) and not all(isinstance(x, int) for x in value)):
        return parameter_text(value)
    return value if isinstance(value, (int, float, str, type(None))) else str(value)


def parameter_text(value: object, name: str = "e_zero") -> str:
    """A parameter's value for a person; what None means depends on the parameter."""
    if value is None:
        return {"sum_bits": "uncut", "operands": "as they are", "rounding": "none", "tiny": "never"}.get(
            name, "fields"
        )
    if isinstance(value, (Rounding, NanRule, Tininess)):
        return value.name
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, DotAdd):
        return f"[{value.types}, K={value.k}, {value.text}]"
    return str(value)


def signs_of(parameters: Parameters, negated: Letters, reads_c: bool) -> tuple[int, int]:
    """Return by which signs the exact sum that d is to be has Σ a·b, 1 or −1, and c, 1, −1 or 0."""
    products = ("a" in negated) + ("d" in negated) + parameters.subtracts_products
    c = ("c" in negated) + ("d" in negated)
    return -1 if products % 2 else 1, 0 if not reads_c else -1 if c % 2 else 1


#: A longer chain is refused: its inputs alone would fill the memory.
MOST_PRODUCTS = 1 << 24


OfAlgorithm = TypeVar("OfAlgorithm", bound=Parameters)


@dataclass(frozen=True, repr=False)
class DotAdd:
    """One dot product-add as data: `k` products of `a_format`·`b_format`, plus c, giving d.

    With a `scale_format`, each `scale_block` consecutive a have a scale in common, and so have the b.
    With a `product_order`, a permutation of a period of products, the algorithm takes them in that order, period by
    period: with (0, 2, 1, 3) and steps of two products, the first step takes products 0 and 2.
    With `negated`, letters of "acd", the signs of all a, of c and of d are changed, those of zeros and infinities too,
    and no NaN's: before anything else is done to a and c, and after everything else to d, around all steps.  Unless it
    `reads_c`, c counts as −0, which leaves the sum of the products as it is, its sign too.
    Formats may be given by name.  Raises ValueError for a combination that makes no sense or that the encodings do not
    hold, TypeError for what is no number, no format, or no parameters.
    """

    k: int
    a_format: Format
    b_format: Format
    c_format: Format
    d_format: Format
    parameters: Parameters
    scale_format: Format | None = None
    scale_block: int = 0  #: products per pair of scales; 0 where there are none
    product_order: tuple[int, ...] = ()  #: in which products are taken; empty: as they are numbered
    negated: Letters = ""  #: whose signs are changed, of a, c and d
    reads_c: bool = True  #: else c counts as −0

    def __post_init__(self) -> None:
        _settle(self)
        p = self.parameters
        for name in ("a", "b", "c", "d"):
            fmt = getattr(self, f"{name}_format")
            # Unsigned formats of P3109 are numbers, and so are unsigned integers as results.
            factor = (name in "ab" and fmt.is_whole) or (name == "d" and fmt.is_integer)
            if not ((fmt.signed or factor) and fmt.has_zero):
                raise ValueError(f"{name} cannot be {fmt}, a format of scales, without sign or without zero")
            if fmt.is_integer and not p.is_integer:
                raise ValueError(f"{p.algorithm} takes and gives no integers, as {fmt}: integer_dot does")
        if self.k > MOST_PRODUCTS:
            raise ValueError(f"K = {self.k} is too long a chain: at most {MOST_PRODUCTS} products")
        if self.k < 1 or self.k % p.step_products:
            raise ValueError(
                f"K = {self.k} is not a multiple of the {p.step_products} products of one {p.algorithm} step"
            )
        if self.k > p.step_products and self.c_format != self.d_format:
            raise ValueError(
                f"a chain needs c and d of one type, since one step's d is the next one's c: "
                f"c is {self.c_format}, d is {self.d_format}"
            )
        rho = getattr(p, "rho", None)
        if rho is not None and rho.format != self.d_format:
            raise ValueError(f"ρ = {rho} gives {rho.format}, but d is {self.d_format}")
        if not p.saturates and self.d_format.one_nan is not None:
            raise ValueError(
                f"{p.algorithm} gives no {self.d_format}: results of P3109's formats are fda's, gfda's and fma's"
            )
        if not p.gives_e4m3 and self.d_format.specials is Specials.FN:
            raise ValueError(f"{p.algorithm} gives no {self.d_format}: such results are fma's")
        roundings = [x for x in map(p.__getitem__, p.keys()) if isinstance(x, Conversion)]
        if not p.gives_largest and any(x.saturates_ieee for x in roundings):
            raise ValueError(f"{p.algorithm} has no ρ that saturates a format of IEEE 754: efda has")
        if not p.rounds_randomly and any(x.rounding.is_stochastic for x in roundings):
            raise ValueError(f"{p.algorithm} has no stochastic rounding: fda and gfda have")
        if self.scale_format is None and self.scale_block:
            raise ValueError(f"a scale block of {self.scale_block} without a scale format")
        if self.scale_format is not None:
            if not p.takes_scales:
                raise ValueError(f"{p.algorithm} takes no block scales")
            if self.scale_format.signed or self.scale_format.specials is Specials.IEEE:
                raise ValueError(
                    f"scales are unsigned and never infinite; {self.scale_format} is no format of them"
                )
            if self.scale_block < 1 or self.k % self.scale_block:
                raise ValueError(f"K = {self.k} is not a multiple of the scale block of {self.scale_block}")
            if self.scale_block % p.step_products and p.step_products % self.scale_block:
                raise ValueError(
                    f"scale blocks of {self.scale_block} straddle the steps of {p.step_products} products: "
                    "one has to be a multiple of the other"
                )
        self._check_order()
        self._check_signs()
        p.check(self)

    def _check_order(self) -> None:
        order, step = self.product_order, self.parameters.step_products
        if not order:
            return
        if sorted(order) != list(range(len(order))):
            raise ValueError(f"a product order is a permutation of 0 … {len(order) - 1}, not {order}")
        if len(order) % step or self.k % len(order):
            raise ValueError(
                f"a product order of {len(order)} has to hold whole steps of {step} products, and K = {self.k} whole "
                "orders"
            )
        if self.scale_format is not None:
            raise ValueError("a product order and block scales together are not modelled")
        if order == tuple(range(len(order))):
            object.__setattr__(self, "product_order", ())  # as they are numbered

    def _check_signs(self) -> None:
        if "c" in self.negated and not self.reads_c:
            raise ValueError("a c that is not read cannot be negated")
        for name in self.negated:
            if not (fmt := getattr(self, f"{name}_format")).has_minus_zero:
                raise ValueError(f"{name} of {fmt}, which has no −0, cannot be negated")
        if not self.reads_c and not self.c_format.has_minus_zero:
            raise ValueError(f"a c of {self.c_format}, which has no −0, has to be read")

    def __repr__(self) -> str:
        return f"<DotAdd {clipped(f'{self.types}, K={self.k}, {self.text}', 2 * LINE)}>"

    def parameters_as(self, algorithm: type[OfAlgorithm]) -> OfAlgorithm:
        """The parameters, which are known to be of this algorithm."""
        assert isinstance(self.parameters, algorithm)
        return self.parameters

    @property
    def text(self) -> str:
        """`fda F=24 L=8 ρ=RZ-FP32 e_zero=-132`: the algorithm, its parameters and the order of its products."""
        told = f"{self.parameters.algorithm} {self.parameters.describe()}".rstrip()
        order = (
            f", products in the order {','.join(map(str, self.product_order))}" if self.product_order else ""
        )
        return told + order + self.signs

    @property
    def signs(self) -> str:
        """`, −a, c not read`: whose signs are changed, and whether c is read; nothing where all is as it is."""
        return "".join(f", −{name}" for name in self.negated) + ("" if self.reads_c else ", c not read")

    @property
    def taken(self) -> list[int]:
        """The products, in the order in which they are taken."""
        period = self.product_order or (0,)
        return [start + k for start in range(0, self.k, len(period)) for k in period]

    @property
    def in_order(self) -> DotAdd:
        """This dot product-add with its products taken as they are numbered."""
        return replace(self, product_order=()) if self.product_order else self

    @cached_property
    def plain(self) -> DotAdd:
        """This dot product-add without changes of signs, and with c read."""
        return replace(self, negated="", reads_c=True) if self.is_signed else self

    @property
    def is_signed(self) -> bool:
        """Whether signs are changed, or c is not read: it is another one (`plain`), given other codes."""
        return bool(self.negated) or not self.reads_c

    @property
    def passes_on(self) -> bool:
        """Whether one that is issued again, its result being the next one's c, is this one of a greater K: signs are
        changed around a whole chain."""
        return self.reads_c and ("c" in self.negated) == ("d" in self.negated)

    @property
    def product_sign(self) -> int:
        """1 or −1, by which the exact sum that d is to be has Σ a·b."""
        return signs_of(self.parameters, self.negated, self.reads_c)[0]

    @property
    def c_sign(self) -> int:
        """1, −1 or 0, by which the exact sum that d is to be has c."""
        return signs_of(self.parameters, self.negated, self.reads_c)[1]

    @property
    def exact_sum(self) -> str:
        """The exact sum that d is to be, in symbols: `c + Σ a·b`, `Σ a·b − c`."""
        c, products = {1: "c", -1: "−c", 0: ""}[self.c_sign], "Σ a·b"
        if self.product_sign > 0:
            return {1: f"c + {products}", -1: f"{products} − c", 0: products}[self.c_sign]
        return f"{c} − {products}" if c else f"−{products}"

    @property
    def period(self) -> int:
        """Products of whole steps, whole orders, and whole block scales: what a chain repeats."""
        return math.lcm(self.parameters.step_products, len(self.product_order) or 1, self.scale_block or 1)

    def class_of(self, k: int) -> Hashable:
        """The class of the k-th product (`Parameters.class_of`)."""
        n = len(self.product_order)
        return self.parameters.class_of(k - k % n + self.product_order.index(k % n) if n else k)

    @property
    def scales(self) -> int:
        """How many scales a has, and b too: K / scale_block, or 0."""
        return self.k // self.scale_block if self.scale_block else 0

    @property
    def types(self) -> str:
        scaled = f" (scales {self.scale_format}, one per {self.scale_block})" if self.scale_format else ""
        return f"{self.a_format} × {self.b_format} + {self.c_format} → {self.d_format}{scaled}"

    @property
    def nan_is_canonical(self) -> bool:
        """Whether the code of a NaN result is known; if not, any two NaN results count as equal."""
        return self.parameters.nan_is_canonical

    def replace(self, **changes: object) -> DotAdd:
        """Return a copy with some of `k`, the formats, or the parameters (by their own names) changed.

        Raises TypeError for a name that is neither.
        """
        _parameters(changes.get("parameters", self.parameters), "parameters")
        own = _names(type(self))
        changes = new_names(changes, self.parameters.renamed, self.parameters.algorithm)
        mine = {n: v for n, v in changes.items() if n in own}
        theirs = {n: v for n, v in changes.items() if n not in own}
        unknown = sorted(set(theirs) - set(self.parameters.keys()))
        if unknown:
            raise TypeError(
                f"{self.parameters.algorithm} has no parameter {unknown[0]!r}: "
                f"it has {', '.join(self.parameters.keys())}; also {', '.join(sorted(own))}"
            )
        parameters = _parameters(mine.pop("parameters", self.parameters), "parameters")
        return with_changes(self, mine | {"parameters": with_changes(parameters, theirs)})
