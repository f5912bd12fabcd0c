"""One solver in a process of its own: reads a JSON line per query on stdin, answers with a JSON line on stdout.

    {"number": n, "script": SMT-LIB 2 text, "constants": {name: bits}, "timeout": seconds}
    {"number": n, "sha256": of the script, "verdict": "sat" | "unsat" | "unknown", "model": {name: value},
     "why": text, "memory": peak in bytes}

It dies with its parent: it asks the kernel for that where it can (Linux), stops at the end of stdin, and an alarm
ends it a little after the query's time limit whatever the solver is doing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import sys

#: Seconds that a solver may overrun its own limit before the alarm ends its process.
_GRACE = 5.0


def _die_with_parent(parent: int) -> None:
    if sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we asked
        os._exit(1)


def _limit_memory(megabytes: int) -> None:
    try:
        import resource
    except ImportError:  # not on this platform; the solvers' own limits remain
        return
    limit = megabytes << 20
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _forget_peak() -> None:
    """Start measuring the peak memory anew, where the kernel can (Linux)."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def _peak() -> int:
    """The most memory this process has held since `_forget_peak`, in bytes; 0 where that is not known.

    Not `ru_maxrss` where it can be helped: that starts at what the parent had when it started this process.
    """
    with contextlib.suppress(OSError), open("/proc/self/status") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10


def _digest(script: str) -> str:
    return hashlib.sha256(script.encode()).hexdigest()


def _of_bits(script: str) -> bool:
    """Whether it is a question about bit-vectors; or one about real numbers."""
    return script.startswith("(set-logic QF_BV)")


def ask_z3(script: str, constants: dict[str, int], timeout: float) -> dict[str, object]:
    import z3

    solver = z3.SolverFor("QF_BV" if _of_bits(script) else "QF_NRA")
    solver.set("timeout", max(1, int(timeout * 1000)))
    solver.add(z3.parse_smt2_string(script))
    verdict = solver.check()
    if verdict == z3.sat:
        model = solver.model()
        values = {
            name: model.eval(z3.BitVec(name, bits), model_completion=True).as_long()
            for name, bits in constants.items()
        }
        return {"verdict": "sat", "model": values}
    if verdict == z3.unsat:
        return {"verdict": "unsat"}
    return {"verdict": "unknown", "why": f"z3: {solver.reason_unknown()}"}


def ask_bitwuzla(script: str, constants: dict[str, int], timeout: float) -> dict[str, object]:
    import bitwuzla

    if not _of_bits(script):
        return {"verdict": "unknown", "why": "bitwuzla: no real numbers"}
    options = bitwuzla.Options()
    options.set(bitwuzla.Option.PRODUCE_MODELS, bool(constants))
    options.set(bitwuzla.Option.TIME_LIMIT_PER, max(1, int(timeout * 1000)))
    parser = bitwuzla.Parser(bitwuzla.TermManager(), options)
    parser.parse(script, True, False)
    solver = parser.bitwuzla()
    verdict = solver.check_sat()
    if verdict == bitwuzla.Result.SAT:
        declared = {str(term.symbol()): term for term in parser.get_declared_funs()}
        values = {
            name: int(solver.get_value(declared[name]).value(10)) if name in declared else 0
            for name in constants
        }
        return {"verdict": "sat", "model": values}
    if verdict == bitwuzla.Result.UNSAT:
        return {"verdict": "unsat"}
    return {"verdict": "unknown", "why": "bitwuzla: time limit"}


def ask_cvc5(script: str, constants: dict[str, int], timeout: float) -> dict[str, object]:
    import cvc5

    solver = cvc5.Solver(cvc5.TermManager())
    solver.setOption("produce-models", "true" if constants else "false")
    solver.setOption("tlimit-per", str(max(1, int(timeout * 1000))))
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, script, "script")
    symbols = parser.getSymbolManager()
    while not (command := parser.nextCommand()).isNull():
        if command.getCommandName() == "check-sat":
            continue
        if said := command.invoke(solver, symbols).strip():  # commands that succeed say nothing
            raise ValueError(said)
    verdict = solver.checkSat()
    if verdict.isSat():
        declared = {term.getSymbol(): term for term in symbols.getDeclaredTerms()}
        values = {
            name: int(solver.getValue(declared[name]).getBitVectorValue(10)) if name in declared else 0
            for name in constants
        }
        return {"verdict": "sat", "model": values}
    if verdict.isUnsat():
        return {"verdict": "unsat"}
    return {"verdict": "unknown", "why": f"cvc5: {verdict.getUnknownExplanation().name.lower()}"}


BACKENDS = {"z3": ask_z3, "bitwuzla": ask_bitwuzla, "cvc5": ask_cvc5}


def main() -> None:
    backend, parent, megabytes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    _die_with_parent(parent)
    _limit_memory(megabytes)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    ask = BACKENDS[backend]
    for line in sys.stdin:
        query = json.loads(line)
        _forget_peak()
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, query["timeout"] + _GRACE)
        try:
            reply = ask(query["script"], query["constants"], query["timeout"])
        except MemoryError:
            reply = {"verdict": "unknown", "why": f"{backend}: out of memory ({megabytes} MB)"}
        except (
            Exception
        ) as error:  # whatever a solver raises becomes an Unknown with its reason, never an answer
            reply = {"verdict": "unknown", "why": f"{backend}: {type(error).__name__}: {error}"}
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
        reply |= {"number": query["number"], "sha256": _digest(query["script"]), "memory": _peak()}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
