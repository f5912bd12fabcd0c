"""The `mmaformal` command: `diff`, `prove`, `list`, `show`, `run`, `check`, `verify`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mmaformal import __version__
from mmaformal.architectures import (
    ARCHITECTURES,
    Architecture,
    UnknownInstructionError,
    UnknownRevisionError,
)
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.solver.portfolio import NoSolverError
from mmaformal.witness import WitnessError

_SETTLED, _WRONG_MODEL, _WRONG_USE, _UNKNOWN, _INTERRUPTED = 0, 1, 2, 3, 130

#: What a user can do something about; any other exception is an error of ours and keeps its traceback.
_TOLD_IN_A_LINE = (
    ValueError,
    OSError,
    UnknownInstructionError,
    UnknownRevisionError,
    NoSolverError,
)


class UsageError(ValueError):
    """Wrong use of the command, told in one line."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    args = _parser().parse_args(_with_values(sys.argv[1:] if argv is None else argv))
    run: Callable[[argparse.Namespace], int] = args.run
    try:
        status = run(args)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe, `head` say, has seen enough
        # Python flushes stdout once more at exit, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _SETTLED
    except WitnessError as error:
        print(f"mmaformal: {error}", file=sys.stderr)
        return _WRONG_MODEL
    except _TOLD_IN_A_LINE as error:
        print(f"mmaformal: {error}", file=sys.stderr)
        return _WRONG_USE


def _with_values(argv: Sequence[str]) -> list[str]:
    """`--a -1,2` as `--a=-1,2`: argparse takes a list that starts with a minus sign for an option."""
    out: list[str] = []
    words = iter(argv)
    for word in words:
        value = next(words, None) if word in ("--a", "--b", "--c", "--scale-a", "--scale-b") else None
        out.append(word if value is None else f"{word}={value}")
    return out


def _parser() -> argparse.ArgumentParser:
    from mmaformal.queries import verify
    from mmaformal.recordings import command as check

    parser = argparse.ArgumentParser(
        prog="mmaformal",
        description="A formal model of matrix-multiply units, and a verifier over it.",
    )
    parser.add_argument("--version", action="version", version=f"mmaformal {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    diff = commands.add_parser(
        "diff",
        help="an input on which two architectures differ, or a proof that there is none",
        description="Find the smallest input on which two instructions differ, or prove that there is none. "
        "Exit status: 0 for an answer, 3 for Unknown, 2 for wrong use, 1 if the models' two encodings disagree.",
    )
    diff.add_argument("x", metavar="ARCH", help="an architecture")
    diff.add_argument("y", metavar="ARCH", help="another one, or the same")
    diff.add_argument("name", metavar="INSTRUCTION", help="SASS or PTX name")
    diff.add_argument("other", metavar="INSTRUCTION", nargs="?", help="the second one's, if it differs")
    diff.add_argument("--chain", type=int, metavar="K", help="chain both instructions to K products")
    diff.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="CONSTRAINT",
        help="finite, normal, nonzero, 'magnitude LOW HIGH [abc]', c=CODE, a3=CODE; repeatable",
    )
    diff.add_argument("--timeout", type=float, default=120.0, metavar="S", help="seconds (default 120)")
    diff.add_argument(
        "--memory", type=int, default=4096, metavar="MB", help="megabytes per solver (default 4096)"
    )
    diff.add_argument(
        "--solver", action="append", choices=("z3", "bitwuzla"), help="use this one; repeatable"
    )
    diff.add_argument("--json", action="store_true", help="print the answer as JSON")
    diff.add_argument("--cuda", metavar="FILE", help="write the witness as a CUDA program")
    diff.add_argument("--smtlib", metavar="DIR", help="write what was proved as SMT-LIB 2 files")
    diff.set_defaults(run=_diff)

    prove = commands.add_parser(
        "prove",
        help="whether a property holds for an instruction: a proof, or an input for which it does not",
        description="Prove a property of an instruction for all inputs, or show one for which it is false. "
        "Exit status: 0 Holds, 1 Fails, 3 Unknown, 2 wrong use.",
    )
    prove.add_argument("property", metavar="PROPERTY", nargs="?", help="its name (see --list)")
    prove.add_argument("arch", metavar="ARCH", nargs="?", help="an architecture")
    prove.add_argument("name", metavar="INSTRUCTION", nargs="?", help="SASS or PTX name")
    prove.add_argument("--list", action="store_true", help="what properties there are")
    prove.add_argument("--timeout", type=float, default=120.0, metavar="S", help="seconds (default 120)")
    prove.add_argument("--json", action="store_true", help="print JSON")
    prove.add_argument("--smtlib", metavar="DIR", help="write what was proved as SMT-LIB 2 files")
    prove.set_defaults(run=_prove)

    listing = commands.add_parser("list", help="what instructions there are")
    listing.add_argument("arch", metavar="ARCH", nargs="?", help="only this architecture's")
    listing.add_argument("--json", action="store_true")
    listing.set_defaults(run=_list)

    show = commands.add_parser("show", help="a model in words, each parameter with its source")
    show.add_argument("arch", metavar="ARCH")
    show.add_argument("name", metavar="INSTRUCTION")
    show.add_argument("--json", action="store_true")
    show.set_defaults(run=_show)

    run = commands.add_parser(
        "run",
        help="evaluate one dot product-add, stage by stage",
        description="Evaluate c + Σ a·b. Inputs are comma-separated: bit patterns as 0x…, numbers as decimals "
        "(or inf, nan) that the format holds exactly.",
    )
    run.add_argument("arch", metavar="ARCH")
    run.add_argument("name", metavar="INSTRUCTION")
    run.add_argument("--a", required=True, metavar="A0,A1,…")
    run.add_argument("--b", required=True, metavar="B0,B1,…")
    run.add_argument("--c", default="0", metavar="C", help="default 0")
    run.add_argument("--scale-a", metavar="S0,…", help="block scales of a, for instructions that take them")
    run.add_argument("--scale-b", metavar="S0,…")
    run.add_argument("--pad", action="store_true", help="fill missing positions with +0")
    run.add_argument("--json", action="store_true")
    run.set_defaults(run=_run)

    check.add_parser(commands)
    verify.add_parser(commands)
    return parser


def _architecture(name: str) -> Architecture:
    if name.partition("@")[0] not in ARCHITECTURES:
        raise UsageError(f"no architecture {name!r}; there are {', '.join(ARCHITECTURES)}")
    return ARCHITECTURES[name]


# ---- diff ---------------------------------------------------------------------------------------------------


def _diff(args: argparse.Namespace) -> int:
    from mmaformal.queries.find_difference import find_difference
    from mmaformal.solver.answers import Different, Equal, Proof, Unknown

    x = _architecture(args.x)[args.name]
    y = _architecture(args.y)[args.other or args.name]
    if args.chain is not None:
        x, y = x.chained(args.chain), y.chained(args.chain)
    with _Status() as status:
        answer = find_difference(
            x,
            y,
            where=args.where,
            timeout=args.timeout,
            memory=args.memory,
            backends=args.solver,
            progress=status.show,
        )
    print(json.dumps(answer.to_json(), indent=2) if args.json else answer, flush=True)
    if args.cuda:
        if isinstance(answer, Different):
            Path(args.cuda).write_text(answer.witness.to_cuda())
        else:
            print("mmaformal: no witness, so no CUDA program was written", file=sys.stderr)
    if args.smtlib:
        proof = answer.proof if isinstance(answer, Equal) else Proof(tuple(answer.obligations))  # type: ignore[attr-defined]
        proof.write_smtlib(args.smtlib)
    return _UNKNOWN if isinstance(answer, Unknown) else _SETTLED


# ---- prove --------------------------------------------------------------------------------------------------


def _prove(args: argparse.Namespace) -> int:
    from mmaformal.queries.properties import PROPERTIES
    from mmaformal.queries.property import STATUS
    from mmaformal.solver.answers import Holds, Proof

    if args.list:
        if args.json:
            print(json.dumps({each.name: each.statement for each in PROPERTIES.values()}, indent=2))
        else:
            width = max(map(len, PROPERTIES))
            print("\n".join(f"{each.name:<{width}}  {each.statement}" for each in PROPERTIES.values()))
        return _SETTLED
    if args.name is None:
        raise UsageError(
            "prove needs a property, an architecture and an instruction; --list shows the properties"
        )
    if args.property not in PROPERTIES:
        raise UsageError(f"no property {args.property!r}; there are {', '.join(PROPERTIES)}")
    if args.timeout <= 0:
        raise UsageError(f"--timeout is a number of seconds above 0, not {args.timeout}")
    answer = PROPERTIES[args.property].prove(_architecture(args.arch)[args.name], timeout=args.timeout)
    print(json.dumps(answer.to_json(), indent=2) if args.json else answer, flush=True)
    if args.smtlib:
        proof = answer.proof if isinstance(answer, Holds) else Proof(getattr(answer, "obligations", ()))
        proof.write_smtlib(args.smtlib)
    return STATUS[type(answer)]


class _Status:
    """One line on a terminal's stderr, overwritten; nothing elsewhere."""

    def __enter__(self) -> _Status:
        self.tty = sys.stderr.isatty()
        return self

    def show(self, text: str) -> None:
        if self.tty:
            print(f"\r\033[K{text[:78]}", end="", file=sys.stderr, flush=True)

    def __exit__(self, *_: object) -> None:
        if self.tty:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


# ---- list, show ---------------------------------------------------------------------------------------------


def _as_json(i: Instruction) -> dict[str, Any]:
    out: dict[str, Any] = {
        "name": i.name,
        "architecture": i.architecture,
        "aliases": list(i.aliases),
        "m": i.m,
        "n": i.n,
        "k": i.k,
        "a_format": str(i.a_format),
        "b_format": str(i.b_format),
        "c_format": str(i.c_format),
        "d_format": str(i.d_format),
        "algorithm": i.algorithm,
        "parameters": {
            name: v if isinstance(v := i.parameters[name], (int, bool, type(None))) else str(v)
            for name in i.parameters.keys()  # noqa: SIM118 - Parameters is no dict
        },
        "sources": dict(i.sources),
    }
    if i.spec.scale_format is not None:
        out |= {"scale_format": str(i.spec.scale_format), "scale_block": i.spec.scale_block}
    return out


def _list(args: argparse.Namespace) -> int:
    from mmaformal.listing import architecture_table, instruction_tables

    if args.json:
        chosen = [_architecture(args.arch)] if args.arch else list(ARCHITECTURES.values())
        print(json.dumps([_as_json(i) for arch in chosen for i in arch], indent=2))
    elif args.arch:
        print(architecture_table(_architecture(args.arch)))
    else:
        print(instruction_tables())
    return _SETTLED


def _show(args: argparse.Namespace) -> int:
    from mmaformal.listing import in_words

    instruction = _architecture(args.arch)[args.name]
    print(json.dumps(_as_json(instruction), indent=2) if args.json else in_words(instruction))
    return _SETTLED


# ---- run ----------------------------------------------------------------------------------------------------


def _codes(text: str, fmt: Format, count: int, what: str, pad: bool) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    codes = []
    for word in words:
        hexadecimal = word.lower().startswith("0x") and "p" not in word.lower()
        try:
            code = int(word, 16) if hexadecimal else fmt.code(word)
            fmt.fields(code)
        except ValueError as error:
            raise UsageError(f"{what}: {error}") from None
        codes.append(code)
    if len(codes) > count or (len(codes) < count and not pad):
        hint = "; --pad fills the rest with +0" if len(codes) < count else ""
        raise UsageError(f"{what} needs {count} values, not {len(codes)}{hint}")
    return codes + [0] * (count - len(codes))


def _run(args: argparse.Namespace) -> int:
    from mmaformal.explain import code_text, exact_dot_add, explain_case, number_text

    i = _architecture(args.arch)[args.name]
    spec = i.spec
    a = _codes(args.a, spec.a_format, i.k, "--a", args.pad)
    b = _codes(args.b, spec.b_format, i.k, "--b", args.pad)
    c = _codes(args.c, spec.c_format, 1, "--c", False)[0]
    scales: list[list[int]] = []
    if spec.scale_format is not None:
        blocks = i.k // spec.scale_block
        for what, text in (("--scale-a", args.scale_a), ("--scale-b", args.scale_b)):
            if text is None:
                raise UsageError(f"{i.label} needs {what}: {blocks} {spec.scale_format} values")
            scales.append(_codes(text, spec.scale_format, blocks, what, False))
    elif args.scale_a or args.scale_b:
        raise UsageError(f"{i.label} takes no block scales")
    d = int(i.dot_add(a, b, c, *scales))
    if args.json:
        print(json.dumps({"instruction": i.name, "architecture": i.architecture, "d": f"{d:#x}"}))
        return _SETTLED
    print(i)
    print(explain_case(i, a, b, c, *scales))
    exact = exact_dot_add(spec, a, b, c, *scales)
    if exact is not None:
        print(f"exact:  {number_text(exact)}")
    print(f"d:      {code_text(d, spec.d_format)}")
    return _SETTLED


if __name__ == "__main__":
    sys.exit(main())
