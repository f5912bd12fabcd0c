"""fma, the fused multiply-add of any formats: its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from mmaformal.formats import Specials, fp64
from mmaformal.limits import factors, significant
from mmaformal.rounding import Conversion, NanRule, Tininess
from mmaformal.spec import DotAdd, LossModel, Parameters


@dataclass(frozen=True, repr=False)
class Fma(Parameters):
    """fma, fused multiply-add of any formats (semantics §3; IEEE 754-2019 §5.4.1, formatOf-fusedMultiplyAdd).

    `d = c`, then `d = ρ(a_k·b_k + d)` for k = 0 … K−1, each exact until it is rounded once with ρ; a, b, c and d may
    each have a format of their own.  Specials as IEEE 754; an exact zero has its sign where ρ has signed zeros.
    """

    rho: Conversion
    nan: NanRule = NanRule.ANY
    ones: bool = False  #: whether the NaN of an operation without one is all ones but the sign
    flush_inputs: bool = False  #: whether a subnormal operand counts as zero of its sign
    tiny: Tininess | None = (
        None  #: when a result counts as tiny, which is flushed to zero of its sign; None: never
    )

    algorithm: ClassVar[str] = "fma"
    is_design: ClassVar[bool] = True
    has_flags: ClassVar[bool] = True
    loss: ClassVar[LossModel] = LossModel.NOTHING
    saturates: ClassVar[bool] = True
    gives_e4m3: ClassVar[bool] = True
    meanings: ClassVar[Mapping[str, str]] = {
        "nan": "which NaN an fma gives",
        "ones": "whether the NaN of an operation without one is all ones but the sign",
        "flush_inputs": "whether a subnormal operand counts as zero",
        "tiny": "when a result counts as tiny, which is flushed to zero; none: never",
    }
    summary: ClassVar[str] = "fused multiply-add of any formats: K fma in order, each rounded once"
    step_products = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.needs(
            self.ones is False or self.nan is not NanRule.ANY, "a NaN that is known, if it is all ones"
        )

    @property
    def factors_commute(self) -> bool:
        return not self.nan.order

    @property
    def first_nan(self) -> str:
        return ", ".join(self.nan.order)

    def check(self, spec: DotAdd) -> None:
        formats, d = (spec.a_format, spec.b_format, spec.c_format), spec.d_format
        bits = self.product_bits(spec)
        self.needs(
            bits + 2 <= 48 or formats[:2] == (fp64, fp64),
            f"products of at most 48 bits, or of fp64, not {bits + 2}",
        )
        self.needs(self.frame(spec) <= 108, f"a sum of at most 108 fractional bits, not {self.frame(spec)}")
        self.needs(self.tiny is None or self.rho.saturation is None, f"tiny results kept in {d}")
        if self.nan.order:
            ieee = all(x.specials is Specials.IEEE and x.is_whole for x in (*formats, d))
            held = all(x.fraction_bits <= d.fraction_bits for x in formats)
            self.needs(ieee and held, f"formats whose NaNs d holds, not {spec.types}")
        self.needs(
            self.rho.saturation is None or not self.ones, f"NaNs of all ones of {d}, which has one NaN"
        )

    def product_bits(self, spec: DotAdd) -> int:
        """Fractional bits of a product."""
        return spec.a_format.fraction_bits + spec.b_format.fraction_bits

    def zero_exponent(self, spec: DotAdd) -> int:
        """The exponent of a term that is zero: the least that one has, so that it does not move the other."""
        return min(spec.a_format.min_exponent + spec.b_format.min_exponent, spec.c_format.min_exponent)

    def frame(self, spec: DotAdd) -> int:
        """Fractional bits of the sum at the larger exponent, the last one sticky, so that ρ rounds it as the exact sum.

        Let u be the term of exponent e, with z leading zeros at most, and v the other.  Where v loses bits it is below
        2^(e−z−1), the sum is above 2^(e−z−1), and ρ, of p fractional bits, looks no further down than 2^(e−z−p−2),
        which is above the sticky place if frame ≥ p + z + 3.  v loses bits only then if frame ≥ z + 2 + those of v, and
        u none if frame > those of u.  A product has the zeros of one subnormal factor, and of two where c reaches below
        the least product; c has them where its least exponent is above that of ρ, below which ρ looks no further.
        """
        a, b, c, p = spec.a_format, spec.b_format, spec.c_format, self.rho.fraction_bits
        bits, low = self.product_bits(spec), a.min_exponent + b.min_exponent
        zeros = bits if c.min_exponent < low else max(a.fraction_bits, b.fraction_bits)
        of_product = max(p + zeros + 3, zeros + 2 + c.fraction_bits, bits + 1)
        zeros = c.fraction_bits if c.min_exponent > self.rho.format.min_exponent else 0
        of_c = max(p + zeros + 3, zeros + 2 + bits, c.fraction_bits + 1)
        return max(of_product, of_c)

    def keeps(self, spec: DotAdd) -> str:
        return f"rounds after every product: each fma is exact until it is rounded to {significant(spec.d_format)}"

    def datapath(self, spec: DotAdd) -> tuple[str, dict[str, object]] | None:
        own = {"k": spec.k, **factors(spec), "c": spec.c_format, "rho": self.rho}
        return "fma", own | {
            "nan": self.nan.name,
            "ones": int(self.ones),
            "flush_inputs": int(self.flush_inputs),
            "tiny": self.tiny.name if self.tiny else "kept",
        }
