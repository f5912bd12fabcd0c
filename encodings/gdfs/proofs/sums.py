"""How large a group's sum is, and which one cancels; and on codes, where nothing is lost of it."""

from __future__ import annotations

import z3

from mmaformal.cases.inputs import Codes
from mmaformal.encodings.gdfs import Gdfs
from mmaformal.encodings.gdfs import smt as gdfs
from mmaformal.facts.sums import constants_within
from mmaformal.proof.encoding_links import summands
from mmaformal.proof.lemmas import Link, within
from mmaformal.proof.related_runs import Pairing, operand_codes
from mmaformal.spec import DotAdd


def significand_is_small(
    pairing: Pairing, spec: DotAdd, step: gdfs.GdfsStep, significand: z3.BitVecRef, size: Link
) -> None:
    """A group's sum is within that of its products' bounds; its scaled significand follows."""
    text = "no significand is above the largest"
    G, largest = spec.parameters.G, 36 * 4  # type: ignore[attr-defined]
    for whole, group in zip(step.sums, step.groups, strict=True):
        if not group.significand.eq(significand):
            continue
        running: Link | None = None
        x = None
        for n, term in enumerate(summands(whole, G), 1):
            link = within(term, largest)
            made_of = constants_within(term)
            pair = [x for side in (step.a, step.b) for x in side if x.field.get_id() in made_of]
            fields: list[Link] = []
            for factor in pair:
                field = Link(z3.UGE(factor.field, 1), (factor.field,))
                codes = operand_codes(factor)
                fields += pairing.derive("decode", "exponent fields are at least 1", [field], [], codes)
            inputs = [part for factor in pair for part in (factor.sign, factor.significand)]
            pairing.derive("multiply", "a product is at most 36", [link], fields, inputs)
            x = term if x is None else x + term
            before, running = running, within(x, n * largest)
            pairing.derive(
                "multiply",
                "a partial sum of a group is in range",
                [running],
                [link] if before is None else [before, link],
            )
        assert running is not None
        scales = [y.significand for y in (*step.scale_a, *step.scale_b)]
        pairing.derive("multiply", text, [size], [running], scales)
        return
    pairing.derive("multiply", text, [size], [], [step.c.significand])


def group_that_cancels(spec: DotAdd) -> Codes | None:
    """1·1 + 1·(−1) and a c of which a bit is below the last place kept, but for the doubled c it is not.

    gdfs takes a group's exponent from the scales, so that of a doubled group stays, also if it cancels.
    None where there is one product only, or c has no such number.
    """
    p, fmt, scale = spec.parameters_as(Gdfs), spec.c_format, spec.scale_format
    assert scale is not None
    a, b = ((x.bias << x.fraction_bits) << x.ignored_low_bits for x in (spec.a_format, spec.b_format))
    exponent = fmt.fraction_bits - p.F - 1
    if spec.k < 2 or not fmt.min_exponent <= exponent <= fmt.max_exponent:
        return None
    c = (((exponent + fmt.bias) << fmt.fraction_bits) + 1) << fmt.ignored_low_bits
    rest = (0,) * (spec.k - 2)
    scales = (scale.bias << scale.fraction_bits,) * spec.scales
    return Codes((a, a, *rest), (b, b | spec.b_format.sign_mask, *rest), c, scales, scales)
