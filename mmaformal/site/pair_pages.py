"""Pages of pairs: all of them, a map of classes for each types, and where two instructions part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from urllib.parse import urlencode

from mmaformal.architectures import ARCHITECTURES
from mmaformal.bits import drawn_steps
from mmaformal.cases.inputs import Codes
from mmaformal.display import ShortRepr, counted, minimality_lines
from mmaformal.instruction import Instruction
from mmaformal.intrinsics import CUnavailableError
from mmaformal.mma import CudaUnavailableError
from mmaformal.pictures import alignment_svg
from mmaformal.shown_stages import (
    code_text,
    exact_dot_add,
    foldable,
    number_text,
    shown_steps,
    side_by_side,
    ulps_apart,
)
from mmaformal.site.addresses import page_address
from mmaformal.site.html import Markup, definition_list, drawing, link, page, page_table, playground, verdict
from mmaformal.site.known_pairs import SIGNS, KnownPairs, Verdict, pair_slug, types_slug
from mmaformal.site.pairs import FunctionPair, PairAnswer
from mmaformal.site.search import search_words
from mmaformal.witness import Witness


def pair_address(pair: FunctionPair, root: str = "") -> str:
    """The page of a pair of different functions."""
    return f"{root}pair/{pair_slug(pair)}.html"


def types_address(slug: str, root: str = "") -> str:
    """The page of the instructions that take some types."""
    return f"{root}types/{slug}.html"


def verdict_rows(pairs: KnownPairs, i: Instruction, root: str) -> list[tuple[Markup, ...]]:
    """A row for each other instruction of the same types: whether it is equal, and what shows that it is not."""
    rows: list[tuple[Markup, ...]] = []
    for each in pairs.of(i):
        other, pair = each.other(i), each.compared.pair
        shown = "" if each.answer is None else _input_text(each.answer)
        word = verdict(each.word)
        if each.answer is not None and pair is not None:
            word = f'<a href="{escape(pair_address(pairs.questions[pair.key], root))}">{word}</a>'
        rows.append(
            (link(other.label, page_address(other, root)), str(other.k), word, escape(each.how), shown)
        )
    return rows


def _input_text(answer: PairAnswer) -> Markup:
    """The input of an answer by its codes."""
    return "" if answer.codes is None else f"<code>{escape(answer.codes.text)}</code>"


# ---- all of them ---------------------------------------------------------------------------------------------------


def pairs_page(pairs: KnownPairs) -> str:
    """Counts of verdicts by types, and a row for each pair of different functions."""
    groups = pairs.types()
    told: dict[str, Counter[str]] = {slug: Counter() for slug in groups}
    for each in pairs.verdicts:
        told[types_slug(each.compared.x.spec)][each.word] += 1
    heads = ("types", "instructions", "classes", "pairs", *SIGNS)
    by_types = [
        (
            link(some[0].spec.types, types_address(slug)),
            str(len(some)),
            str(len(pairs.classes(some))),
            str(told[slug].total()),
            *(str(told[slug][word]) for word in SIGNS),
        )
        for slug, some in groups.items()
    ]
    rows = [
        (
            link(f"{pair.x.label} and {pair.y.label}", pair_address(pair)),
            escape(pair.x.spec.types),
            str(pair.x.k),
            verdict(word.word),
            escape(word.how),
            "" if word.answer is None else _input_text(word.answer),
        )
        for pair, word in ((pair, _verdict_of(pairs, key)) for key, pair in pairs.questions.items())
    ]
    words_of_rows = [pair_words(pairs, key) for key in pairs.questions]
    words = Counter(each.word for each in pairs.verdicts)
    counts = ", ".join(f"{words[word]:,} {word}" for word in SIGNS if words[word])
    body = (
        f"<p>{counted(len(pairs.verdicts), 'pair')} of instructions that take the same types: {counts}. Two of "
        "different K are compared as chains, at the least K that both can be chained to. Pairs of the same two "
        f"functions are one question, so that there are {counted(len(pairs.questions), 'question')}.</p>\n"
        '<p>Name two devices or instructions and a type to find a pair: <a href="index.html?q=a100+h100+fp16">a100 '
        'h100 fp16</a>; or go to <a href="#types">maps of types</a>, <a href="#pairs">all pairs</a>.</p>\n'
        f'<section id="types"><h2>By types: maps of classes</h2>\n{page_table(heads, by_types, "types")}</section>\n'
        '<section id="pairs"><h2>Pairs of different functions</h2>\n'
        f"{page_table(('pair', 'types', 'K', 'verdict', 'how', 'input'), rows, 'pairs', words_of_rows)}</section>\n"
    )
    return page("Pairs of instructions", body, data="pairs")


def pair_words(pairs: KnownPairs, key: str) -> str:
    """The words by which a question is found: of all instructions that it is about, their devices and types."""
    asked = [i for each in pairs.asked_by(key) for i in (each.x, each.y)]
    return " ".join(dict.fromkeys(word for i in asked for word in (i.name, *search_words(i))))


def _verdict_of(pairs: KnownPairs, key: str) -> Verdict:
    first = pairs.asked_by(key)[0]
    return pairs.between(first.x, first.y)


# ---- a map ---------------------------------------------------------------------------------------------------------


def types_page(pairs: KnownPairs, slug: str, some: Sequence[Instruction]) -> str:
    """A map of the classes of instructions of some types: which are equal, and an input between any two."""
    classes = pairs.classes(some)
    listed = [
        (
            str(number),
            ", ".join(link(i.label, page_address(i, "../")) for i in each),
            str(each[0].k),
            each[0].algorithm,
            escape(each[0].parameters.describe()),
        )
        for number, each in enumerate(classes, 1)
    ]
    heads = "".join(f'<th scope="col">{number}</th>' for number in range(1, len(classes) + 1))
    lines = []
    for row, each in enumerate(classes):
        cells = "".join(
            '<td class="self"></td>' if row == column else _cell(pairs, each[0], other[0])
            for column, other in enumerate(classes)
        )
        more = f" +{len(each) - 1}" if len(each) > 1 else ""
        name = f"{row + 1} {link(each[0].label, page_address(each[0], '../'))}{more}"
        lines.append(f'<tr><th scope="row">{name}</th>{cells}</tr>')
    legend = (
        "<p>≠ n: they differ, on an input of n nonzero products; *: that input is not proved to be the smallest. "
        "=: equal, by proof or as one function once chained to one K. ?: not settled. –: they cannot be chained to "
        "one K. ·: not compared yet. +n: n more instructions are of the class. A sign leads to the pair.</p>\n"
    )
    body = (
        f"<p>{counted(len(some), 'instruction')} of {escape(some[0].spec.types)}, in "
        f"{counted(len(classes), 'class').replace('classs', 'classes')}: within one, of one K, all are equal.</p>\n"
        f'<section id="map"><h2>Map</h2>\n{legend}<div class="scroll" role="region" tabindex="0" aria-label="map">\n'
        f'<table class="map"><thead><tr><td></td>{heads}</tr></thead><tbody>\n'
        + "\n".join(lines)
        + '\n</tbody></table></div></section>\n<section id="classes"><h2>Classes</h2>\n'
        + page_table(("class", "instructions", "K", "algorithm", "parameters"), listed, "classes")
        + "</section>\n"
    )
    return page(some[0].spec.types, body, depth=1, data="pairs")


def _cell(pairs: KnownPairs, x: Instruction, y: Instruction) -> Markup:
    found = pairs.between(x, y)
    sign, pair, answer = SIGNS[found.word], found.compared.pair, found.answer
    name = f"{x.label} and {y.label}: {found.word}, {found.how}"
    if answer is None or pair is None:
        return f'<td class="{_css(found.word)}" title="{escape(name)}">{sign}</td>'
    if answer.codes is not None:
        few = sum(1 for a, b in zip(answer.codes.a, answer.codes.b, strict=True) if a or b)
        sign += f"&#8239;{few}{'' if answer.smallest else '*'}"
        name += f": {answer.codes.text}"
    to = pair_address(pairs.questions[pair.key], "../")
    return f'<td class="{_css(found.word)}"><a href="{escape(to)}" title="{escape(name)}">{sign}</a></td>'


def _css(word: str) -> str:
    return word.replace(" ", "-")


# ---- a pair --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class PairPage(ShortRepr):
    """A page, and the programs that it links, by the suffixes of their files."""

    text: str
    programs: dict[str, str]


def pair_page(pairs: KnownPairs, key: str, proof: str = "") -> PairPage:
    """A pair: its verdict; an input on which both differ, run again, both traces side by side, where they part.

    proof: the address of its proof's page below the site's folder, where it has one.
    """
    pair, answer = pairs.questions[key], pairs.answers.get(key)
    title = f"{pair.x.label} and {pair.y.label}"
    told = _verdict_of(pairs, key)
    both = "".join(
        f"<li>{link(i.label.partition('[')[0], page_address(i, '../../'))} ({escape(_devices(i))}): "
        f"{escape(str(i).partition(': ')[2])}</li>\n"
        for i in (pair.x, pair.y)
    )
    body = f'<p class="lead">{verdict(told.word)}: {escape(told.how)}{_cost(answer)}</p>\n<ul>\n{both}</ul>\n'
    if proof:
        body += f"<p>{link('The proof, to check in this browser', f'../../{proof}')}</p>\n"
    programs: dict[str, str] = {}
    if answer is not None and answer.codes is not None:
        witness = answer.witness(pair)
        programs = _programs(witness)
        body += (
            "<p>Neither result is a fault: each unit computes by its own rule, and these are two rules. Which one is "
            "nearer to the exact sum depends on the input.</p>\n"
        )
        body += _shown(pair, answer, witness, programs)
    about = "".join(
        f"<li>{' and '.join(link(i.label, page_address(i, '../../')) for i in (each.x, each.y))}</li>\n"
        for each in pairs.asked_by(key)
    )
    asked = counted(len(pairs.asked_by(key)), "pair")
    body += (
        '<section id="about"><h2>The same question</h2>\n'
        f'<details><summary>{asked} of instructions</summary><ul class="columns">\n{about}</ul></details></section>\n'
    )
    map_ = link("Map of these types", types_address(types_slug(pair.x.spec), "../../"))
    asks = urlencode(
        {"kind": "diff", "x": pair.x.label.partition("[")[0], "y": pair.y.label.partition("[")[0]}
    )
    ask = link("Ask solvers on this machine", f"../../questions.html#{asks}")
    command = f"<pre>{escape(_command(pair))}</pre>\n<p>{map_}. {ask} (where <code>mmaformal serve</code> runs).</p>"
    body += f'<section id="commands"><h2>In a terminal</h2>\n{command}</section>\n'
    return PairPage(page(title, body, depth=2, data="pairs"), programs)


def _devices(i: Instruction) -> str:
    """The devices that the model of an instruction is of."""
    return ARCHITECTURES[i.architecture].gpus


def _cost(answer: PairAnswer | None) -> str:
    if answer is None or not answer.timeout:
        return ""
    proofs = counted(len(answer.obligations), "obligation")
    return f". Solvers had {answer.timeout:g} s, took {answer.seconds:.1f} s, and refuted {proofs}."


def _command(pair: FunctionPair) -> str:
    names = [i.name.partition("[")[0] for i in (pair.x, pair.y)]
    chained = f" --k {pair.x.k}" if any(i.issues > 1 or "[" in i.name for i in (pair.x, pair.y)) else ""
    second = "" if names[0] == names[1] else f" {names[1]}"
    return f"mmaformal diff {pair.x.architecture} {pair.y.architecture} {names[0]}{second}{chained}"


def _programs(witness: Witness) -> dict[str, str]:
    """The programs that run the input on a device, by suffix, as far as there is one."""
    found = {}
    for suffix, make, error in (
        ("cu", witness.to_cuda, CudaUnavailableError),
        ("c", witness.to_c, CUnavailableError),
    ):
        try:
            found[suffix] = make()
        except (error, ValueError):
            continue
    return found


def _shown(pair: FunctionPair, answer: PairAnswer, witness: Witness, programs: dict[str, str]) -> Markup:
    codes = answer.codes
    assert codes is not None
    spec, given = pair.x.spec, (codes.a, codes.b, codes.c, codes.scale_a, codes.scale_b)
    exact = exact_dot_add(spec, *given)
    apart = ulps_apart(*witness.results, spec.d_format)
    numbers = {"input": witness.case_text}
    if exact is not None:
        numbers["exact c + Σ a·b"] = number_text(exact)
    for i, d in zip((pair.x, pair.y), witness.results, strict=True):
        numbers[i.label] = code_text(d, i.d_format)
    if exact is not None and (nearer := _nearer(pair, witness, exact)):
        numbers["nearer to the exact sum"] = nearer
    numbers["apart by"] = "not comparable: one is a NaN" if apart is None else f"{apart} ulp"
    if answer.minimality:
        numbers["how small"] = "; ".join(minimality_lines(answer.minimality, 10_000))
    body = f'<section id="input"><h2>An input on which they differ</h2>\n{definition_list(numbers)}'
    words = _words(codes)
    both = [i.label.partition("[")[0] for i in (pair.x, pair.y)]
    body += f'<p><a class="button" href="{escape(playground("../../", both, words))}">Try it in the playground</a> '
    name = pair_slug(pair).rpartition("/")[2]
    for suffix in programs:
        kind = {"cu": "CUDA", "c": "C"}[suffix]
        body += (
            f'<a class="button" href="{escape(name)}.{suffix}" download>Program for a device ({kind})</a> '
        )
    return body + "</p></section>\n" + _stages(pair, given)


def _nearer(pair: FunctionPair, witness: Witness, exact: Fraction) -> str:
    """The unit whose result is nearer to the exact sum; empty where one is no number."""
    codes = [(i.d_format, int(d)) for i, d in zip((pair.x, pair.y), witness.results, strict=True)]
    if not all(fmt.is_finite(code) for fmt, code in codes):
        return ""
    off = [abs(fmt.value(code) - exact) for fmt, code in codes]
    if off[0] == off[1]:
        return "neither"
    return (pair.x if off[0] < off[1] else pair.y).label


def _words(codes: Codes) -> dict[str, list[str]]:
    """Words to type into the playground: codes, without the zeros at the end."""
    words: dict[str, list[str]] = {}
    for side in ("a", "b", "scale_a", "scale_b"):
        each = [f"{x:#x}" for x in getattr(codes, side)]
        while each and each[-1] == "0x0" and side in "ab":
            each.pop()
        if each:
            words[side] = each
    return {**words, "c": [f"{codes.c:#x}"]}


def _stages(
    pair: FunctionPair, given: tuple[Sequence[int], Sequence[int], int, Sequence[int], Sequence[int]]
) -> Markup:
    sides = [shown_steps(i, *given) for i in (pair.x, pair.y)]
    busy = foldable(sides)
    labels = [i.label for i in (pair.x, pair.y)]
    body = '<section id="stages"><h2>Where they part</h2>\n'
    if len({len(steps) for steps in busy}) == 1:
        tables, first = side_by_side(busy)
        body += f'<p class="apart">{escape(first)}</p>\n' + _stage_table(tables, labels)
    else:
        body += '<p class="apart">They do not add the same terms in one step.</p>\n'
        for label, steps in zip(labels, busy, strict=True):
            body += _stage_table(side_by_side([steps])[0], [label])
    body += "</section>\n"
    drawn = [
        f"<h3>{escape(label)}</h3>\n{drawing(alignment_svg(steps), drawn_steps(steps))}"
        for label, steps in zip(labels, busy, strict=True)
        if drawn_steps(steps)
    ]
    if drawn:
        body += f'<section id="terms"><h2>Terms aligned</h2>\n{"".join(drawn)}</section>\n'
    return body


_MOST_ROWS = 60


def _stage_table(tables: Sequence[Sequence[tuple[str, ...]]], labels: Sequence[str]) -> Markup:
    """All steps, row by row; what differs is marked, the first of it most; of very many rows those that matter."""
    rows = [row for each in tables for row in each]
    shown = (
        rows
        if len(rows) <= _MOST_ROWS
        else [row for row in rows if row[0] == "≠" or row[1].endswith("encode")]
    )
    shown = shown[:_MOST_ROWS]
    heads = "".join(f'<th scope="col">{escape(each)}</th>' for each in ("", "stage", "of", *labels))
    lines, seen = [], False
    for row in shown:
        marked = row[0] == "≠"
        kind = "" if not marked else ' class="differs"' if seen else ' class="differs first"'
        seen = seen or marked
        cells = "".join(
            f"<td{' class=code' if k > 2 else ''}>{escape(cell)}</td>" for k, cell in enumerate(row)
        )
        lines.append(f"<tr{kind}>{cells}</tr>")
    left = len(rows) - len(shown)
    rest = f"<p>{counted(left, 'row')} that do not differ are left out.</p>\n" if left else ""
    name = escape(f"stages of {' and '.join(labels)}")
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{name}"><table class="stages plain">'
        f"<thead><tr>{heads}</tr></thead><tbody>\n" + "\n".join(lines) + f"\n</tbody></table></div>\n{rest}"
    )
