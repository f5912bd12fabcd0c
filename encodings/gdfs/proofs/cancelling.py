"""Why doubling a and c does not always double the result of gdfs."""

from __future__ import annotations

from mmaformal.cases.inputs import Codes
from mmaformal.encodings.gdfs import Gdfs
from mmaformal.spec import DotAdd


def group_that_cancels(spec: DotAdd) -> Codes | None:
    """1·1 + 1·(−1) and a c of which a bit is below the last place kept, but for the doubled c it is not.

    gdfs takes a group's exponent from the scales, so that of a doubled group stays, also if it cancels.
    None where there is one product only, or c has no such number.
    """
    p, fmt, scale = spec.parameters, spec.c_format, spec.scale_format
    assert isinstance(p, Gdfs)
    assert scale is not None
    a, b = ((x.bias << x.fraction_bits) << x.ignored_low_bits for x in (spec.a_format, spec.b_format))
    exponent = fmt.fraction_bits - p.F - 1
    if spec.k < 2 or not fmt.min_exponent <= exponent <= fmt.max_exponent:
        return None
    c = (((exponent + fmt.bias) << fmt.fraction_bits) + 1) << fmt.ignored_low_bits
    rest = (0,) * (spec.k - 2)
    scales = (scale.bias << scale.fraction_bits,) * spec.scales
    return Codes((a, a, *rest), (b, b | spec.b_format.sign_mask, *rest), c, scales, scales)
