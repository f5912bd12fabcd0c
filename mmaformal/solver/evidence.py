"""What was proved, by which solver, when and at what cost: a record per obligation, in an SQLite file.

An obligation is known by the SHA-256 of its SMT-LIB 2 script and by nothing else: a record speaks for a question only
while the question is the same text.  Several processes may use one file at once, and a record is on disk before the
next question is asked; so what is killed can be taken up again, and repeats nothing that it had finished.

    with EvidenceStore("evidence.db") as store, recording(store):
        prove_encodings(hopper["HMMA.16816.F32"])     # asks only what the file does not have
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType

from mmaformal.solver.portfolio import Outcome

#: Told by the file, so that a later layout is not taken for this one.
_LAYOUT = 1

_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS records (
    sha256    TEXT NOT NULL,     -- of the SMT-LIB 2 script, UTF-8
    solver    TEXT NOT NULL,     -- who answered; empty if nobody did
    version   TEXT NOT NULL,
    verdict   TEXT NOT NULL CHECK (verdict IN ('sat', 'unsat', 'unknown')),
    name      TEXT NOT NULL,
    statement TEXT NOT NULL,     -- what holds if the verdict is unsat
    seconds   REAL NOT NULL,     -- wall clock
    memory    INTEGER NOT NULL,  -- peak of the solver's process, bytes; 0 if not known
    date      TEXT NOT NULL,     -- UTC, ISO 8601
    PRIMARY KEY (sha256, solver, version)
) WITHOUT ROWID;
PRAGMA user_version = {_LAYOUT};
"""

#: A proof is never replaced; what was sat or unknown is, by what came of asking again.
_ADD = """
INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET verdict = excluded.verdict, name = excluded.name, statement = excluded.statement,
    seconds = excluded.seconds, memory = excluded.memory, date = excluded.date
WHERE records.verdict <> 'unsat'
"""

#: Seconds to wait for another process that is writing.
_PATIENCE = 60.0


class EvidenceError(OSError):
    """A file that is no store of evidence, or cannot be read or written."""


def digest(script: str) -> str:
    """SHA-256 of a script, in hexadecimal."""
    return hashlib.sha256(script.encode()).hexdigest()


def default_path() -> Path:
    """`evidence.db` in the user's cache folder of mmaformal."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "mmaformal" / "evidence.db"


@dataclass(frozen=True)
class Record:
    """What one solver said of one script."""

    sha256: str
    solver: str
    version: str
    verdict: str  #: sat, unsat or unknown
    name: str
    statement: str
    seconds: float
    memory: int  #: bytes; 0 if not known
    date: str  #: UTC, ISO 8601

    @property
    def outcome(self) -> Outcome:
        return Outcome(self.verdict, self.solver, self.version, self.seconds, memory=self.memory)  # type: ignore[arg-type]


class EvidenceStore:
    """Records in a file, which is made if there is none.  Raises EvidenceError if it is no such file."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)
            self._prepare()
        except (OSError, sqlite3.Error) as error:
            raise EvidenceError(f"{self.path} cannot hold evidence: {error}") from error

    def _prepare(self) -> None:
        (layout,) = self._db.execute("PRAGMA user_version").fetchone()
        if layout not in (0, _LAYOUT):
            self._db.close()
            raise EvidenceError(f"it was written by another version of mmaformal (layout {layout})")
        if layout == 0:
            names = [name for (name,) in self._db.execute("SELECT name FROM sqlite_master")]
            if names and "records" not in names:
                raise EvidenceError("it is another program's database")
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")
        # What a killed process has committed is safe so; only a power cut may take the last records.
        self._db.execute("PRAGMA synchronous = NORMAL")

    def __enter__(self) -> EvidenceStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    def add(self, sha256: str, name: str, statement: str, outcome: Outcome) -> None:
        """Record what came of a question, on disk when this returns."""
        date = datetime.now(timezone.utc).isoformat(timespec="microseconds")
        cost = outcome.seconds, outcome.memory, date
        said = sha256, outcome.solver, outcome.version, outcome.verdict, name, statement
        try:
            self._db.execute(_ADD, (*said, *cost))
        except sqlite3.Error as error:
            raise EvidenceError(f"{self.path}: {error}") from error

    def proof(self, sha256: str, solver: str | None = None) -> Record | None:
        """The oldest record by which a script is unsatisfiable; with `solver`, one by that solver.

        Raises EvidenceError if the file cannot be read, or if it has a record by which the script is satisfiable.
        """
        query = "SELECT * FROM records WHERE sha256 = ? AND verdict IN ('sat', 'unsat') ORDER BY date"
        try:
            records = [Record(*row) for row in self._db.execute(query, [sha256])]
        except sqlite3.Error as error:
            raise EvidenceError(f"{self.path}: {error}") from error
        verdicts = {record.verdict: record for record in records}
        if len(verdicts) > 1:
            sat, unsat = verdicts["sat"], verdicts["unsat"]
            raise EvidenceError(
                f"{self.path}: solvers contradict each other on {sha256}: {unsat.solver} {unsat.version} says unsat, "
                f"{sat.solver} {sat.version} sat; one of them is wrong, so nothing is proved"
            )
        wanted = (r for r in records if r.verdict == "unsat" and solver in (None, r.solver))
        return next(wanted, None)

    def records(self) -> Iterator[Record]:
        """All records, the oldest first."""
        for row in self._db.execute("SELECT * FROM records ORDER BY date, sha256"):
            yield Record(*row)


_current: ContextVar[EvidenceStore | None] = ContextVar("evidence", default=None)


def current_store() -> EvidenceStore | None:
    """Where proofs are recorded, if anywhere."""
    return _current.get()


@contextmanager
def recording(store: EvidenceStore | None) -> Iterator[EvidenceStore | None]:
    """Within this block every question that is asked is recorded, and what the store has proved is not asked."""
    token = _current.set(store)
    try:
        yield store
    finally:
        _current.reset(token)
