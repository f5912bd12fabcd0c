"""The pages of the atlas: the first one, and one for each architecture, instruction and property."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

from mmaformal.architectures import ARCHITECTURES, Architecture
from mmaformal.corridor import corridor_svg, widths_text
from mmaformal.display import counted
from mmaformal.instruction import Instruction
from mmaformal.listing import brief_parameters, fields_in_words, parameters_in_words, sources_cited
from mmaformal.probes.tree import Tree
from mmaformal.queries.properties import PROPERTIES
from mmaformal.recordings.backing import HARDWARE, Backing, backing
from mmaformal.site.addresses import page_address, proof_address
from mmaformal.site.curves import error_svg, error_text, survival_svg
from mmaformal.site.finding_pages import linked_sources
from mmaformal.site.html import Markup, definition_list, drawing, link, page, page_table, playground, verdict
from mmaformal.site.known_pairs import types_slug
from mmaformal.site.pair_pages import types_address, verdict_rows
from mmaformal.site.records import Atlas, bits_kept, counts
from mmaformal.site.search import devices, search_words
from mmaformal.survival import survival

_PRODUCT = re.compile(r"a(\d+)·b\1 = ([^·,]+)·([^, ]+)")
_NONE = "No table of properties was given to the build.\n"


def witness_codes(i: Instruction, text: str) -> dict[str, list[str]] | None:
    """Return the playground's fields for a printed witness; None where its scales are not zeros' or it has none."""
    c = re.search(r"\bc = ([^, ]+)(?=,| gives)", text)
    if c is None or "scales" in text:
        return None
    products = {int(k): (x, y) for k, x, y in _PRODUCT.findall(text.partition(" gives")[0])}
    last = max(products, default=-1) + 1
    zero = ("0", "0")
    return {
        "a": [products.get(k, zero)[0] for k in range(last)],
        "b": [products.get(k, zero)[1] for k in range(last)],
        "c": [c[1]],
    }


def _instruction_rows(atlas: Atlas, shown: Sequence[Instruction], root: str) -> Markup:
    rows, words = [], []
    for i in shown:
        backed = backing(i)
        found = [*atlas.verdicts(i).values()]
        rows.append(
            (
                link(i.name, page_address(i, root)),
                link(i.architecture, f"{root}architecture/{i.architecture}.html"),
                escape(i.spec.types),
                f"{i.m}×{i.n}×{i.k}",
                i.algorithm,
                escape(brief_parameters(i)),
                bits_kept(i),
                escape(_behind(backed)),
                str(found.count("holds")),
                str(found.count("fails")),
            )
        )
        words.append(" ".join(search_words(i)))
    head = ("instruction", "architecture", "types", "m×n×k", "algorithm", "parameters", "keeps", "behind it")
    return page_table((*head, "holds", "fails"), rows, "instructions", words)


def _behind(backed: Backing | None) -> str:
    """The kind of evidence behind a model; of a like unit, where nothing of its own was recorded."""
    if backed is None:
        return ""
    borrowed = not backed.recorded and backed.alike and backed.kind == HARDWARE
    return f"{backed.kind}, of a like unit" if borrowed else backed.kind


def tasks(atlas: Atlas) -> list[tuple[str, Markup, str]]:
    """Ways in, by what is wanted: a question, a sentence, and the command that answers it."""
    pairs = counted(len(atlas.pairs.verdicts), "pair")
    return [
        (
            "Which of two devices is right?",
            f"Search for both, as {link('a100 h100 fp16', '?q=a100+h100+fp16')}: {link(pairs, 'pairs.html')} are "
            "compared, each with an input on which they differ. "
            f"{link('Generations', 'generations.html')}: what newer units gain and lose.",
            "mmaformal diff a100 h100 HMMA.16816.F32",
        ),
        (
            "How many bits does an accumulator keep?",
            f"Search for a device and a type, as {link('h100 fp8', '?q=h100+fp8')}; the page of an instruction has "
            "its accumulator drawn, bounds and properties.",
            "mmaformal show h100 QGMMA.64x8x32.F32.E4M3.E4M3",
        ),
        (
            "Is my kernel's result explained?",
            "Of D, A and B as files: which unit and which order of additions made D, or which elements are wrong.",
            "mmaformal explain D.npy A.npy B.npy --device h100",
        ),
        (
            "What does a claim rest on?",
            f"{link('Sources', 'sources.html')}: what each paper and manual says of which instructions; the page of "
            "an instruction has the outputs of devices that its model reproduces.",
            "mmaformal list --sources",
        ),
        (
            "Does my design compute it?",
            "Verilog, SystemVerilog, BTOR2, C or Python: proved equal to a unit, or the smallest input where it is "
            "not. Of several files: a list, the module, its parameters; <code>--port a=op_a_i[15:0]</code> where "
            "ports are not found by their names, <code>--tie rnd_i=0</code> for others.",
            "mmaformal signoff dot.sv --against hopper HMMA.16816.F32\n"
            "mmaformal signoff -f dot.f -I include --top dot -G K=16 --against hopper HMMA.16816.F32",
        ),
    ]


def _tasks(atlas: Atlas) -> Markup:
    rows = "".join(
        f"<dt>{escape(question)}</dt><dd>{answer}<pre>{escape(command)}</pre></dd>\n"
        for question, answer, command in tasks(atlas)
    )
    return (
        f'<dl class="tasks">\n{rows}</dl>\n<p>Commands run after <code>pip install .</code> in a clone.</p>\n'
    )


def index(atlas: Atlas) -> str:
    """The first page: everything, in tables that one word narrows."""
    architectures = page_table(
        ("architecture", "devices", "instructions"),
        [
            (link(name, f"architecture/{name}.html"), escape(each.gpus), str(len(each.instructions)))
            for name, each in ARCHITECTURES.items()
            if each.instructions
        ],
        "architectures",
    )
    rows = []
    for name, statement in atlas.properties.statements.items():
        found = counts(atlas.verdicts(i)[name] for i in atlas.instructions)
        told = [str(found[word]) for word in ("holds", "fails", "open", "not run")]
        rows.append((link(name, f"property/{name}.html"), escape(statement), *told))
    properties = page_table(
        ("property", "statement", "holds", "fails", "open", "not run"), rows, "properties of all instructions"
    )
    body = (
        f"<p>{counted(len(atlas.instructions), 'instruction')} of matrix units: what each keeps of a sum, what is "
        "proved of it, what stands behind its model. "
        f"{link('The playground', 'playground.html')} runs any of them here.</p>\n"
        '<p id="found" role="status"></p>\n'
        f'<section id="tasks"><h2>What do you want to know?</h2>\n{_tasks(atlas)}</section>\n'
        f'<section id="architectures"><h2>Architectures</h2>\n{architectures}</section>\n'
        f'<section id="properties"><h2>Properties</h2>\n{properties if rows else _NONE}</section>\n'
        '<section id="instructions"><h2>Instructions</h2>\n'
        f"{_instruction_rows(atlas, atlas.instructions, '')}</section>\n"
        '<ul id="hits"></ul>\n'
    )
    return page("What matrix units compute", body)


def architecture_page(atlas: Atlas, architecture: Architecture) -> str:
    """An architecture: its devices, its instructions, other readings of its sources."""
    fields = {
        "modelled": architecture.gpus,
        "also found as": ", ".join(devices(architecture.name)),
        "integers": architecture.exact_in_words,
        "other readings": "; ".join(f"{x.name}: {x.summary}" for x in architecture.revisions.values()),
    }
    body = definition_list({name: text for name, text in fields.items() if text})
    return page(architecture.name, body + _instruction_rows(atlas, architecture.instructions, "../"), depth=1)


def property_page(atlas: Atlas, name: str) -> str:
    """A property: its statement, and the verdict of each instruction, with a witness or a proof."""
    rows, words = [], []
    for i in atlas.instructions:
        word = atlas.verdicts(i)[name]
        rows.append(
            (
                link(i.name, page_address(i, "../")),
                verdict(word),
                link(i.architecture, f"../architecture/{i.architecture}.html"),
                i.algorithm,
                _shown(atlas, i, name, word, "../"),
            )
        )
        words.append(" ".join(search_words(i)))
    body = (
        f"<p>{escape(atlas.properties.statements[name])}</p>\n<p>Asked of one: "
        f"<code>mmaformal prove {escape(name)} ARCH INSTRUCTION</code>, which prints a witness, or proves it. An "
        "instruction that has no verdict was not asked for the table.</p>\n"
    )
    head = ("instruction", "verdict", "architecture", "algorithm", "witness or proof")
    return page(name, body + page_table(head, rows, name, words), depth=1)


def _shown(atlas: Atlas, i: Instruction, name: str, word: str, root: str) -> Markup:
    """The input that refutes a property, or the proof to be checked, as far as the site has it."""
    if word == "fails" and (found := atlas.witness(i, name)) is not None:
        unit, text = found
        codes = witness_codes(unit, text)
        tried = "" if codes is None else " " + link("try it", playground(root, [unit.label], codes))
        return f"<code>{escape(text)}</code>{tried}"
    if word == "holds" and (claim := atlas.proof(i, name)) is not None:
        count = counted(len(claim.lemmas), "obligation")
        return link(f"proof: {count}, to check", proof_address(claim.label, name, root))
    return ""


def _property_rows(atlas: Atlas, i: Instruction) -> Iterator[tuple[Markup, ...]]:
    for name, word in atlas.verdicts(i).items():
        shown = _shown(atlas, i, name, word, "../../")
        if not shown and word in ("fails", "holds"):
            shown = f"<code>{escape(f'mmaformal prove {name} {i.architecture} {i.name}')}</code>"
        statement = escape(atlas.properties.statements[name])
        yield link(name, f"../../property/{name}.html"), statement, verdict(word), shown


def _drawn(i: Instruction) -> Markup:
    """The accumulator and the order of summation as drawings."""
    svg = corridor_svg(i.spec)
    shown = f"<h3>The accumulator, to scale</h3>\n{drawing(svg, widths_text(i.spec))}" if svg else ""
    if (kept := survival(i.spec)) is not None:
        shown += (
            "<h3>Bits of a product that survive beside a larger term</h3>\n<p>To the right, by how much the exponent "
            f"of c, and of another product −c, is larger; upwards, the bits kept of {kept.bits}. The model was run.</p>"
            f"\n{drawing(survival_svg(kept), kept.in_words)}"
        )
    try:
        tree = Tree.of(i.spec)
    except ValueError:
        return shown
    return f"{shown}<h3>The order of summation</h3>\n{drawing(tree.to_svg(), tree.to_text())}"


def instruction_page(atlas: Atlas, i: Instruction) -> str:
    """An instruction: what it keeps, in words; what is behind its model; its properties; which ones equal it."""
    shape = f"D = A·B + C: A {i.m}×{i.k}, B {i.k}×{i.n}, C and D {i.m}×{i.n}; {i.spec.types}"
    also = {"also called": ", ".join(i.aliases)} if i.aliases else {}
    body = (
        f"<p>{escape(shape)}. {link(f'All of {i.architecture}', f'../../architecture/{i.architecture}.html')}.</p>\n"
        f'<p><a class="button" href="{playground("../../", [i.label])}">Try it in the playground</a></p>\n'
    )
    keeps = definition_list(also | fields_in_words(i)) + _drawn(i)
    body += f'<section id="keeps"><h2>What it keeps</h2>\n{keeps}</section>\n'
    if (bound := atlas.bound(i)) is not None:
        curve = error_svg(bound)
        drawn = f"<h3>The bound against K</h3>\n{drawing(curve, error_text(bound))}" if curve else ""
        body += f'<section id="bounds"><h2>Bounds</h2>\n{definition_list(bound.in_words)}{drawn}</section>\n'
    parameters = [
        (*map(escape, (each.name, each.value, each.meaning)), linked_sources(each.source, "../../"))
        for each in parameters_in_words(i)
    ]
    if parameters:
        told = page_table(("parameter", "is", "means", "source"), parameters, "parameters")
        cited = definition_list(sources_cited(i))
        body += f'<section id="parameters"><h2>Parameters</h2>\n{told}{cited}</section>\n'
    rows = [*_property_rows(atlas, i)]
    told = (
        page_table(("property", "statement", "verdict", "witness or proof"), rows, "properties")
        if rows
        else _NONE
    )
    body += f'<section id="properties"><h2>Properties</h2>\n{told}</section>\n'
    alike = "".join(
        f"<li>{link(other.label, page_address(other, '../../'))}</li>\n" for other in atlas.same_function(i)
    )
    listed = f"<ul>\n{alike}</ul>\n" if alike else "<p>No other one of the tables has this model.</p>\n"
    body += f'<section id="same"><h2>The same function</h2>\n{listed}</section>\n'
    others = verdict_rows(atlas.pairs, i, "../../")
    if others:
        map_ = link("map of all of these types", types_address(types_slug(i.spec), "../../"))
        told = page_table(("instruction", "K", "verdict", "how", "input"), others, "compared")
        body += f'<section id="compared"><h2>Compared</h2>\n<p>{map_}</p>\n{told}</section>\n'
    body += _commands(i)
    return page(i.label, body, depth=2)


def _commands(i: Instruction) -> Markup:
    """The commands about an instruction, a device's outputs, a kernel's and a design."""
    unit = f"{i.architecture} {i.name}"
    told = {
        "In a terminal": f"mmaformal show {unit}\nmmaformal prove monotonicity-in-c {unit}",
        "A device of your own": f"mmaformal record {i.name} --arch {i.architecture} --out rows.npz\n"
        "mmaformal check rows.npz",
        "What a kernel gave": f"mmaformal explain D.npy A.npy B.npy --device {i.architecture}",
        "A design of your own": f"mmaformal signoff dot.sv --against {unit}\n"
        f"mmaformal signoff -f dot.f -I include --top dot -G K={i.k} --against {unit}",
    }
    lines = "".join(f"<h3>{escape(head)}</h3>\n<pre>{escape(text)}</pre>\n" for head, text in told.items())
    return f'<section id="commands"><h2>Commands</h2>\n{lines}</section>\n'


def playground_page(pyodide: bool) -> str:
    """The page whose script runs the executable encoding; it says so where Python was not given to the build."""
    missing = (
        ""
        if pyodide
        else '<p class="wrong">This site was built without Python for browsers: <code>npm install pyodide</code>, '
        "then <code>mmaformal atlas build --pyodide node_modules/pyodide</code>.</p>\n"
    )
    body = f"""{missing}<noscript><p class="wrong">This page needs scripts. The same in a terminal:
<code>mmaformal run ARCH INSTRUCTION --a … --b … --c … --bits</code>.</p></noscript>
<p>c + Σ a·b, bit for bit, stage by stage, by the executable encoding itself. A number is typed as a decimal, a
fraction, a hexadecimal float (0x1.8p-3), or as bits (0x3c00, 0b11); several with commas fill the next
places. Bits are flipped by a click, or by the arrow keys and the space bar.</p>
<div id="units"></div>
<p id="status" role="status">Python is being loaded …</p>
<div id="inputs"></div>
<div id="results" aria-live="polite"></div>
"""
    return page("Playground", body, script="playground.js")


def jobs_page() -> str:
    """The page that puts questions to the server on this machine."""
    properties = "".join(f"<option>{escape(name)}</option>" for name in PROPERTIES)
    body = f"""<noscript><p class="wrong">This page needs scripts; the commands <code>mmaformal diff</code>,
<code>mmaformal prove</code> and <code>mmaformal check</code> do not.</p></noscript>
<p>Put to the solvers of this machine, by <code>mmaformal serve</code>; what is here ends with it. A recording is named
when it starts (<code>mmaformal serve --recording rows.npz</code>), and so is a design
(<code>--design 'dot.sv --top dot'</code>). Three matrices of a kernel are for
<code>mmaformal explain D.npy A.npy B.npy --device h100</code>.</p>
<p id="status" role="status"></p>
<form id="ask" class="ask" hidden>
<label>question <select name="kind"><option value="diff">where do two units part?</option>
<option value="prove">has a unit a property?</option>
<option value="check">does a recording fit?</option>
<option value="signoff">does a design compute a unit?</option></select></label>
<label data-of="signoff">design <select name="design"></select></label>
<label data-of="diff prove signoff">unit <input name="x" list="labels" value="ampere HMMA.16816.F32"></label>
<label data-of="diff">and <input name="y" list="labels" value="hopper HMMA.16816.F32"></label>
<label data-of="prove">property <select name="property">{properties}</select></label>
<label data-of="check">recording <select name="recording"></select></label>
<label data-of="diff prove signoff">seconds <input name="timeout" type="number" min="1" max="600" value="60"></label>
<datalist id="labels"></datalist>
<button>Ask</button>
</form>
<section aria-live="polite"><h2>Questions</h2><div id="jobs"></div></section>
"""
    return page("Questions to this machine", body, script="jobs.js")
