"""Evidence of what was proved, by which solver, when and at what cost: a record per obligation, in an SQLite file.

An obligation is known by the SHA-256 of its SMT-LIB 2 script and by nothing else: a record speaks for a question only
while the question is the same text.  Several processes may use one file at once, and a record is on disk before the
next question is asked; so what is killed can be taken up again, and repeats nothing that it had finished.

    with EvidenceStore("evidence.db") as store, recording(store):
        verify(hopper["HMMA.16816.F32"])     # asks only what the file does not have
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from mmaformal.display import ShortRepr, clipped
from mmaformal.folders import cache_folder
from mmaformal.solver.portfolio import Outcome

#: Told by the file, so that a later layout is not taken for this one.  Layout 1 had one record for a script and a
#: solver, whatever it said: the second of two that contradict each other was lost.
_LAYOUT = 2

_COLUMNS = "sha256, solver, version, verdict, name, statement, seconds, memory, date"

_SCHEMA = """
CREATE TABLE records (
    sha256    TEXT NOT NULL,     -- of the SMT-LIB 2 script, UTF-8
    solver    TEXT NOT NULL,     -- who answered; empty if nobody did
    version   TEXT NOT NULL,
    verdict   TEXT NOT NULL CHECK (verdict IN ('sat', 'unsat', 'unknown')),
    name      TEXT NOT NULL,
    statement TEXT NOT NULL,     -- what holds if the verdict is unsat
    seconds   REAL NOT NULL,     -- wall clock
    memory    INTEGER NOT NULL,  -- peak of the solver's process, bytes; 0 if not known
    date      TEXT NOT NULL,     -- UTC, ISO 8601
    PRIMARY KEY (sha256, solver, version, verdict),
    CHECK (verdict = 'unknown' OR solver <> '')
) WITHOUT ROWID
"""

#: From layout 1.  What nobody answered is no answer.
_MIGRATE = f"""
INSERT INTO records ({_COLUMNS})
SELECT sha256, solver, version, CASE solver WHEN '' THEN 'unknown' ELSE verdict END, name, statement, seconds, memory,
    date FROM old
"""

#: The first `sat` and the first `unsat` of a solver are kept for good, and the last `unknown`.
_ADD = f"""
INSERT INTO records ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET name = excluded.name, statement = excluded.statement, seconds = excluded.seconds,
    memory = excluded.memory, date = excluded.date
WHERE excluded.verdict = 'unknown'
"""

_ANSWERS = f"SELECT {_COLUMNS} FROM records WHERE sha256 = ? AND verdict <> 'unknown' ORDER BY date, verdict"

_CONTRADICTED = """
SELECT sha256 FROM records WHERE verdict <> 'unknown' GROUP BY sha256 HAVING COUNT(DISTINCT verdict) > 1
ORDER BY MAX(date), sha256
"""

#: Seconds to wait for another process that is writing.
_PATIENCE = 60.0

#: Seconds until a file is opened once more that could only be read.
_PAUSE = 0.1


class EvidenceError(OSError):
    """A file that is no store of evidence, or cannot be read or written."""


class ContradictionError(EvidenceError):
    """A script has a `sat` and an `unsat`: a solver is wrong, and nothing rests on what either said."""

    def __init__(self, path: Path, records: Sequence[Record]) -> None:
        first = records[0]
        said = ", ".join(f"{r.solver} {r.version} says {r.verdict}" for r in records)
        super().__init__(
            f"{path}: solvers contradict each other on {first.sha256} ({first.name}: {first.statement}): {said}; "
            "one of them is wrong, so nothing is proved"
        )
        self.records = tuple(records)


def digest(script: str) -> str:
    """SHA-256 of a script, in hexadecimal."""
    return hashlib.sha256(script.encode()).hexdigest()


def default_path() -> Path:
    """`evidence.db` in the user's cache folder of mmaformal."""
    return cache_folder() / "evidence.db"


@dataclass(frozen=True, repr=False)
class Record(ShortRepr):
    """One solver's answer to one script."""

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
        return Outcome(
            self.verdict,  # type: ignore[arg-type]
            self.solver,
            self.version,
            self.seconds,
            memory=self.memory,
            asked=self.sha256,
        )


class EvidenceStore:
    """Records in a file, which is made if there is none.  Raises EvidenceError if it is no such file.

    Several processes may use one file at once.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._open()
            except sqlite3.OperationalError as error:
                # One that opens the file while another, the last that had it open, takes its log away is told that
                # the database can only be read (SQLITE_READONLY_CANTINIT, _DBMOVED, …): once more, then.
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_READONLY or not os.access(
                    self.path, os.W_OK
                ):
                    raise
                time.sleep(_PAUSE)
                self._open()
        except (OSError, sqlite3.Error) as error:
            raise EvidenceError(f"{self.path} cannot hold evidence: {error}") from error

    def _open(self) -> None:
        self._db = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)
        try:
            self._prepare()
        except BaseException:
            self._db.close()
            raise

    def _prepare(self) -> None:
        if self._layout() != _LAYOUT:
            self._db.execute("BEGIN IMMEDIATE")  # another process may be at the same
            try:
                self._upgrade()
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")
        if self._names("pragma_table_info('records')") != _COLUMNS.split(", "):
            raise EvidenceError("it is another program's database")
        self._db.execute("PRAGMA journal_mode = WAL")
        # What a killed process has committed is safe so; only a power cut may take the last records.
        self._db.execute("PRAGMA synchronous = NORMAL")

    def _upgrade(self) -> None:
        layout = self._layout()
        if layout not in (0, 1, _LAYOUT):
            raise EvidenceError(f"it was written by another version of mmaformal (layout {layout})")
        if layout == 0:
            if self._names("sqlite_master"):
                raise EvidenceError("it is another program's database")
            self._db.execute(_SCHEMA)
        elif layout == 1:
            if self._names("pragma_table_info('records')") != _COLUMNS.split(", "):
                raise EvidenceError("it is another program's database")
            self._db.execute("ALTER TABLE records RENAME TO old")
            self._db.execute(_SCHEMA)
            self._db.execute(_MIGRATE)
            self._db.execute("DROP TABLE old")
        self._db.execute(f"PRAGMA user_version = {_LAYOUT}")

    def _layout(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def _names(self, table: str) -> list[str]:
        return [name for (name,) in self._db.execute(f"SELECT name FROM {table}")]

    def __repr__(self) -> str:
        return f"<EvidenceStore {clipped(str(self.path))}>"

    def __enter__(self) -> EvidenceStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    def _answers(self, sha256: str) -> list[Record]:
        """Who said `sat` or `unsat` of a script, the oldest first.  Raises ContradictionError if both were said."""
        try:
            records = [Record(*row) for row in self._db.execute(_ANSWERS, [sha256])]
        except sqlite3.Error as error:
            raise EvidenceError(f"{self.path}: {error}") from error
        if len({record.verdict for record in records}) > 1:
            raise ContradictionError(self.path, records)
        return records

    def add(self, sha256: str, name: str, statement: str, outcome: Outcome) -> None:
        """Record what came of a question, on disk when this returns.

        Raises EvidenceError if the file cannot be written, and ContradictionError, once it is recorded, if it has the
        opposite of the same script.
        """
        outcome.check()
        date = datetime.now(UTC).isoformat(timespec="microseconds")
        cost = outcome.seconds, outcome.memory, date
        said = sha256, outcome.solver, outcome.version, outcome.verdict, name, statement
        try:
            self._db.execute(_ADD, (*said, *cost))
        except sqlite3.Error as error:
            raise EvidenceError(f"{self.path}: {error}") from error
        if outcome.verdict != "unknown":
            self._answers(sha256)

    def proof(self, sha256: str, solver: str | None = None, not_by: str | None = None) -> Record | None:
        """The oldest record by which a script is unsatisfiable: one by `solver`, or one that is `not_by` a solver.

        Raises EvidenceError if the file cannot be read, ContradictionError if it says both of the script.
        """
        for record in self._answers(sha256):
            if record.verdict == "unsat" and solver in (None, record.solver) and record.solver != not_by:
                return record
        return None

    def contradictions(self) -> list[ContradictionError]:
        """The scripts of which the file says both; whatever rests on one is not proved."""
        found = []
        for sha256 in [sha256 for (sha256,) in self._db.execute(_CONTRADICTED)]:
            try:
                self._answers(sha256)
            except ContradictionError as error:
                found.append(error)
        return found

    def records(self) -> Iterator[Record]:
        """All records, the oldest first."""
        for row in self._db.execute(f"SELECT {_COLUMNS} FROM records ORDER BY date, sha256, verdict"):
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
