"""Cases about the least normal number of d, where it matters when a unit asks if a result is tiny."""

from __future__ import annotations

import random

from mmaformal.cases.inputs import Codes
from mmaformal.formats import Format
from mmaformal.spec import DotAdd


def just_below(spec: DotAdd, count: int) -> list[Codes]:
    """A power of two about the least normal number of d, less little more or less than rounding gives back."""
    rng, d = random.Random(0), spec.d_format

    def code(fmt: Format, exponent: int, fraction: int = 0) -> int:
        field = min(max(exponent + fmt.bias, 1 if fmt.has_zero else 0), fmt.max_exponent + fmt.bias)
        return ((field << fmt.fraction_bits) + fraction) << fmt.ignored_low_bits

    def case() -> Codes:
        a, b, c = [0] * spec.k, [0] * spec.k, 0
        large = d.min_exponent + rng.choice((-1, 0, 0, 1))
        sign = rng.choice((0, 1))
        places = rng.sample(range(-1, spec.k), 2)  # of both terms; c is that before the products
        for k, e, negative in ((min(places), large, sign), (max(places), None, 1 - sign)):
            fmt, fraction = (spec.c_format if k < 0 else spec.a_format), 0
            if e is None:
                e = large - d.fraction_bits - rng.randint(0, 4)
                fraction = rng.choice((0, 1 << (fmt.fraction_bits - 1))) if fmt.fraction_bits else 0
            if k < 0:
                c = code(fmt, e, fraction) | negative * fmt.sign_mask
                continue
            e_a = rng.randint(e - spec.b_format.max_exponent, e - spec.b_format.min_exponent)
            e_a = min(max(e_a, fmt.min_exponent), fmt.max_exponent)
            a[k], b[k] = code(fmt, e_a, fraction) | negative * fmt.sign_mask, code(spec.b_format, e - e_a)
        scales = (code(spec.scale_format, 0),) * spec.scales if spec.scale_format else ()
        return Codes(tuple(a), tuple(b), c, scales, scales)

    return [case() for _ in range(count)]
