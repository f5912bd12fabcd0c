"""Pairs of instructions: none is missing, every witness is run again, and pages say what the store says."""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from dataclasses import replace
from html import unescape
from itertools import combinations
from math import lcm
from pathlib import Path
from random import Random

import pytest

from mmaformal import ARCHITECTURES, ampere, cdna2, hopper, turing
from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import Codes
from mmaformal.cases.run import compiled_results
from mmaformal.cli import main
from mmaformal.executors import LostWorkerError
from mmaformal.site import comparing
from mmaformal.site.comparing import SolverLimits, ask_solvers, compare_pairs, shrunk, smallest_of_pair
from mmaformal.site.known_pairs import KnownPairs, pair_of
from mmaformal.site.pair_pages import pair_page, pairs_page, types_page
from mmaformal.site.pairs import (
    FunctionPair,
    PairAnswer,
    PairStore,
    PairStoreError,
    comparisons,
    function_text,
    questions,
    types_of_pair,
)
from mmaformal.site.proofs import ProofFolder, fill_pair, pair_claim, proof_page
from mmaformal.site.records import Atlas, shipped
from mmaformal.witness import WitnessError, results_differ

ATLAS = Atlas(pairs=shipped("pairs.jsonl"))
PAIRS = ATLAS.pairs
HMMA = FunctionPair(ampere["HMMA.16816.F32"], hopper["HMMA.16816.F32"])


def test_no_pair_is_missing() -> None:
    """Counted apart from what the store is made with: every two instructions of the same types have a verdict."""
    every = [i for architecture in ARCHITECTURES.values() for i in architecture]
    alike = [(x, y) for x, y in combinations(every, 2) if types_of_pair(x.spec) == types_of_pair(y.spec)]
    assert len(PAIRS.verdicts) == len(alike)
    assert [each.compared.x.label for each in PAIRS.verdicts if each.word == "not compared"] == []
    for each in PAIRS.verdicts:
        if each.word == "not comparable":
            assert not each.compared.x.spec.passes_on or not each.compared.y.spec.passes_on
            assert each.compared.x.k != each.compared.y.k
        elif each.word == "unknown":
            assert each.how  # the reason


def test_answers_do_not_depend_on_who_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs have the same answers by one thread and by three, which take their time; a lost worker is one line."""
    pairs = questions(
        comparisons([each for each in ampere if each.name.startswith("HMMA.1684")] + list(turing))
    )
    pairs |= questions(comparisons([ampere["HMMA.16816.F32"], hopper["HMMA.16816.F32"]]))
    asked = []

    def answered(pair: FunctionPair, known: Codes | None, *_: object) -> PairAnswer:
        asked.append(pair.key)
        time.sleep(len(asked) % 3 / 100)
        return PairAnswer(
            pair.key, pair.x.label, pair.y.label, pair.x.k, "equal", obligations=(pair.key,), timeout=1.0
        )

    monkeypatch.setattr(comparing, "smallest_of_pair", answered)
    texts = []
    for jobs in (1, 3):
        store = PairStore(tmp_path / f"{jobs}.jsonl", pairs)
        compare_pairs(pairs, store, str)
        with ThreadPoolExecutor(jobs) as executor:
            ask_solvers(pairs, store, str, SolverLimits(1.0, jobs=jobs), executor)
        store.tidy(pairs)
        texts.append((tmp_path / f"{jobs}.jsonl").read_text())
    assert texts[0] == texts[1]
    assert sorted(asked) == sorted([*pairs, *pairs])

    def lost(*_: object) -> PairAnswer:
        raise BrokenExecutor

    monkeypatch.setattr(comparing, "smallest_of_pair", lost)
    store = PairStore(tmp_path / "lost.jsonl", pairs)
    compare_pairs(pairs, store, str)
    with (
        ThreadPoolExecutor(1) as executor,
        pytest.raises(LostWorkerError, match=r"what was answered is kept; run it"),
    ):
        ask_solvers(pairs, store, str, SolverLimits(1.0, jobs=1), executor)


def test_every_witness_is_run_on_both_models() -> None:
    """Both executables give two results, and those that the store has."""
    shown = 0
    for key, answer in PAIRS.answers.items():
        if answer.answer == "different":
            witness = answer.witness(PAIRS.questions[key])  # raises where they do not differ
            assert sorted(witness.results) == sorted(answer.d), (answer.x, answer.y)
            shown += 1
    assert shown > 900


def test_equal_pairs_have_no_row_that_tells_them_apart() -> None:
    for key, answer in PAIRS.answers.items():
        if answer.answer == "equal":
            pair = PAIRS.questions[key]
            rows = generate(pair.x.spec, 600, seed=5)
            x, y = (compiled_results(i.spec, rows).tolist() for i in (pair.x, pair.y))
            assert not any(results_differ(pair.x.spec, pair.y.spec, *each) for each in zip(x, y, strict=True))


def test_what_is_one_function_is_no_question() -> None:
    compared = {(each.x.label, each.y.label): each for each in comparisons([*ampere, *hopper])}
    one = compared["ampere HMMA.1688.F32", "ampere HMMA.16816.F32"]
    assert one.pair is not None
    assert one.pair.one_function
    assert one.pair.x.k == lcm(8, 16)
    asked = questions(compared.values())
    assert HMMA.key in asked
    assert FunctionPair(HMMA.y, HMMA.x).key == HMMA.key
    assert asked[HMMA.key].x.label == "ampere HMMA.16816.F32"  # and not a chain of HMMA.1688


def test_a_store_goes_on_where_it_was(tmp_path: Path) -> None:
    pairs = {HMMA.key: HMMA}
    store = PairStore(tmp_path / "pairs.jsonl", pairs)
    compare_pairs(pairs, store, lambda _: None)
    answer = store.answers[HMMA.key]
    assert answer.answer == "different"
    assert not answer.smallest
    again = PairStore(store.path, pairs)
    assert again.answers == store.answers
    told: list[str] = []
    compare_pairs(pairs, again, told.append)
    assert told == []  # nothing was run
    with store.path.open("a") as file:
        file.write('{"key": "cut off, for it was kil')
    assert PairStore(store.path, pairs).answers == store.answers
    store.path.write_text("no line\n" + store.path.read_text())
    with pytest.raises(PairStoreError, match=r"pairs\.jsonl:1"):
        PairStore(store.path, pairs)


def test_an_answer_of_solvers_is_proved_smallest() -> None:
    pair = FunctionPair(turing["HMMA.884.F32.F32"], cdna2["v_mfma_f32_4x4x4f16"])
    answer = smallest_of_pair(pair, None, 300.0, 2048)
    assert answer.smallest
    assert answer.codes is not None
    assert PairAnswer.from_json(json.loads(json.dumps(answer.to_json())), pair.x.spec) == replace(
        answer, seconds=round(answer.seconds, 2)
    )


def test_a_witness_that_does_not_show_it_is_an_error() -> None:
    key, answer = next((k, a) for k, a in PAIRS.answers.items() if a.answer == "different")
    pair = PAIRS.questions[key]
    with pytest.raises(WitnessError):
        answer.witness(FunctionPair(pair.x, pair.x))


def test_inputs_are_made_smaller_and_still_differ() -> None:
    rows = generate(HMMA.x.spec, 4000, seed=Random(3).randrange(100))
    x, y = (compiled_results(i.spec, rows) for i in (HMMA.x, HMMA.y))
    start = rows[int((x != y).nonzero()[0][0])]
    end = shrunk(HMMA, start)
    assert sum(map(bool, end.a)) <= sum(map(bool, start.a))
    found = PairAnswer(HMMA.key, "", "", 16, "different", codes=end)
    assert len({*found.witness(HMMA).results}) == 2


def test_pages_say_what_the_store_says() -> None:
    """Numbers of a page are those of the store; of another store, they are others."""
    key = HMMA.key
    page = unescape(pair_page(PAIRS, key).text)
    witness = PAIRS.answers[key].witness(HMMA)
    for i, d in zip((HMMA.x, HMMA.y), witness.results, strict=True):
        assert f"<dt>{i.label}</dt><dd>{d:#010x}" in page
    assert witness.case_text in page
    assert f"where they part: {re.search(r'apart.>(.*?)<', page)[1]}" in str(witness)  # type: ignore[index]
    words = [each.word for each in PAIRS.verdicts]
    told = unescape(pairs_page(PAIRS))
    assert f"{len(words):,} pairs of instructions" in told
    for word in {*words}:
        assert f"{words.count(word):,} {word}" in told
    other = KnownPairs(ATLAS.instructions, None)
    assert f"{len(words) - words.count('not comparable') - words.count('equal'):,} not compared" in unescape(
        pairs_page(other)
    ) or "proved" in {each.how for each in PAIRS.verdicts}
    assert pair_page(other, key).text != page


def test_a_map_has_a_cell_for_every_two_classes() -> None:
    slug, some = next(iter(PAIRS.types().items()))
    classes = PAIRS.classes(some)
    page = types_page(PAIRS, slug, some)
    body = page.partition('<table class="map">')[2].partition("</table>")[0]
    assert body.count("<td") == len(classes) ** 2 + 1  # and the corner
    assert sum(map(len, classes)) == len(some)


def test_the_command_counts_what_is_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "pairs.jsonl"
    store.write_text(shipped("pairs.jsonl").read_text())
    before = {json.dumps(each.to_json()) for each in PAIRS.answers.values()}
    unknown = sum(each.answer == "unknown" for each in PAIRS.answers.values())
    assert main(["atlas", "compare", "--store", str(store)]) == (3 if unknown else 0)
    assert f"{len(PAIRS.questions):,} pairs of different functions" in capsys.readouterr().out
    after = PairStore(store, PAIRS.questions).answers.values()
    assert {json.dumps(each.to_json()) for each in after} == before


def test_functions_have_texts_of_their_own() -> None:
    specs = {i.spec for each in PAIRS.questions.values() for i in (each.x, each.y)}
    assert len({function_text(spec) for spec in specs}) == len(specs) > 200


def test_a_pair_has_its_proof_to_check(tmp_path: Path) -> None:
    pair, slug = pair_of(ampere["HMMA.16816.F16"], hopper["HMMA.16816.F16"])
    folder = ProofFolder(tmp_path)
    assert fill_pair(folder, pair.x, pair.y, slug, timeout=120, memory=2048).left_out == {}
    claim = ProofFolder(tmp_path).claims[pair_claim(slug)]
    assert "Different: ampere HMMA.16816.F16 ≠ hopper HMMA.16816.F16" in proof_page(claim, z3=True)
    assert len(claim.lemmas) > 10
    assert all(folder.script(each.sha256).is_file() for each in claim.lemmas)
    with pytest.raises(ValueError, match="have no page"):
        pair_of(ampere["HMMA.16816.F16"], ampere["HMMA.16816.F32"])
