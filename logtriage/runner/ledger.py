"""The ledger: what was tried on this machine and how it went, in one SQLite file that several runners may share.

Every write is one short transaction that a power cut cannot tear. A write that fails (a full disk, say) is kept and
made up for with the next one; a server is never stopped for it. What comes in is without secrets already.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from logtriage.errors import InputError
from logtriage.runner.entries import attempt_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from logtriage.records import Attempt

VERSION = 1
_WAIT = 30.0  # seconds for another runner's transaction
_EVIDENCE = 200  # attempts that count at most: older ones say little about this machine
_TABLES = """
CREATE TABLE environments (key TEXT PRIMARY KEY, identity TEXT NOT NULL);
CREATE TABLE runs (
    id TEXT PRIMARY KEY, environment TEXT, command TEXT NOT NULL, plan TEXT NOT NULL, started TEXT NOT NULL,
    ended TEXT, outcome TEXT, because TEXT, pid INTEGER, birth TEXT
);
CREATE TABLE attempts (
    id TEXT PRIMARY KEY, run TEXT NOT NULL, number INTEGER NOT NULL, environment TEXT, command TEXT NOT NULL,
    changed TEXT, started TEXT NOT NULL, ended TEXT, pid INTEGER, birth TEXT, host TEXT, port INTEGER, log TEXT,
    stage TEXT, ending TEXT, label TEXT, outcome TEXT, root_line TEXT, seconds REAL, exit_code INTEGER, entry TEXT
);
CREATE INDEX attempts_by_run ON attempts (run, number);
"""
_COLUMNS = ("id", "run", "number", "environment", "command", "changed", "started", "ended", "pid", "birth", "host",
            "port", "log", "stage", "ending", "label", "outcome", "root_line", "seconds", "exit_code",
            "entry")  # fmt: skip
Statement = tuple[str, tuple[Any, ...]]


def default_path() -> str:
    """Return the ledger in the user's state folder."""
    return os.path.join(state_folder(), "ledger.sqlite")


def state_folder() -> str:
    """Return the folder in which this program keeps what it has to remember."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "logtriage")


def now() -> str:
    """Return the time in UTC, for people: nothing is computed from it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def key_of(identity: Mapping[str, Any]) -> str:
    """Return a short name of an environment's identity."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]


class Ledger:
    """An open ledger. `on_trouble` is told when a write has to be put off. Raises InputError if it cannot be opened."""

    def __init__(self, path: str, on_trouble: Callable[[str], None] = lambda text: None) -> None:
        self.path = path
        self._on_trouble = on_trouble
        self._pending: list[list[Statement]] = []
        try:
            os.makedirs(os.path.dirname(os.path.abspath(path)), mode=0o700, exist_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self._db = sqlite3.connect(path, timeout=_WAIT, isolation_level=None)
            self._db.row_factory = sqlite3.Row
            self._prepare()
        except OSError as error:
            raise InputError(f"{path}: the ledger cannot be opened: {error.strerror or error}") from error
        except sqlite3.Error as error:
            raise InputError(f"{path}: is no ledger that can be used: {error}; name another with --ledger") from error

    def close(self) -> None:
        """Write what is still pending, if that is possible, and close the file."""
        self._flush()
        self._db.close()

    # ---- writing

    def begin_run(
        self, run: str, environment: Mapping[str, Any], key: str, command: str, plan: Any, birth: str
    ) -> None:
        """Note that a run begins, and the process that makes it."""
        self._write(
            ("INSERT OR IGNORE INTO environments VALUES (?, ?)", (key, json.dumps(environment, sort_keys=True))),
            ("INSERT OR IGNORE INTO runs (id, environment, command, plan, started) VALUES (?, ?, ?, ?, ?)",
             (run, key, command, json.dumps(plan), now())),
            ("UPDATE runs SET pid = ?, birth = ?, ended = NULL WHERE id = ?", (os.getpid(), birth, run)),
        )  # fmt: skip

    def end_run(self, run: str, outcome: str, because: str) -> None:
        """Note how a run ended."""
        self._write(
            ("UPDATE runs SET ended = ?, outcome = ?, because = ? WHERE id = ?", (now(), outcome, because, run))
        )

    def begin_attempt(self, row: Mapping[str, Any]) -> None:
        """Note that an attempt is about to be launched: until `finish` it counts as unfinished."""
        names = ", ".join(row)
        marks = ", ".join("?" for _ in row)
        self._write((f"INSERT OR REPLACE INTO attempts ({names}) VALUES ({marks})", tuple(row.values())))  # noqa: S608

    def update(self, attempt: str, **values: Any) -> None:
        """Change what is known of an attempt, by the names of the columns."""
        names = ", ".join(f"{name} = ?" for name in values)
        self._write((f"UPDATE attempts SET {names} WHERE id = ?", (*values.values(), attempt)))  # noqa: S608

    def finish(self, attempt: str, entry: Mapping[str, Any]) -> None:
        """Note what an attempt came to, as `entries.entry` puts it."""
        root = entry["report"]["root_cause"]
        self.update(
            attempt, ended=now(), ending=entry["ending"], label=entry["report"]["verdict"]["label"],
            outcome=entry["report"]["verdict"]["outcome"], root_line=root["text"] if root else None,
            stage=entry["stages"][-1]["stage"] if entry["stages"] else None, seconds=entry["seconds"],
            exit_code=entry["exit_code"], entry=json.dumps(entry),
        )  # fmt: skip

    def forget(self, what: str) -> int:
        """Remove a run, an attempt, all attempts in an environment, or ``all``; return how many attempts that were."""
        where, values = {
            "all": ("1", ()),
        }.get(what, ("id = ? OR run = ? OR environment = ?", _bound((what, what, what))))
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            count = self._db.execute(f"DELETE FROM attempts WHERE {where}", values).rowcount  # noqa: S608
            self._db.execute("DELETE FROM runs WHERE ended IS NOT NULL AND id NOT IN (SELECT run FROM attempts)")
        return count

    def add(self, row: Mapping[str, Any], identity: Mapping[str, Any]) -> bool:
        """Add a finished attempt from elsewhere; return whether it was new. Raises InputError for unknown columns."""
        if unknown := sorted(row.keys() - set(_COLUMNS)):
            raise InputError(f"no attempt of a ledger has {', '.join(unknown)}")
        names = ", ".join(row)
        marks = ", ".join("?" for _ in row)
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            values = (row.get("environment"), json.dumps(identity, sort_keys=True))
            self._db.execute("INSERT OR IGNORE INTO environments VALUES (?, ?)", values)
            statement = f"INSERT OR IGNORE INTO attempts ({names}) VALUES ({marks})"  # noqa: S608
            return self._db.execute(statement, _bound(row.values())).rowcount > 0

    # ---- reading

    def attempts(self, where: str = "1", values: Iterable[Any] = ()) -> list[dict[str, Any]]:
        """Return attempts, the oldest first, by column; the clock, which may have jumped, orders nothing."""
        query = f"SELECT {', '.join(_COLUMNS)} FROM attempts WHERE {where} ORDER BY rowid"  # noqa: S608
        return [dict(row) for row in self._db.execute(query, _bound(values))]

    def run(self, run: str | None = None) -> dict[str, Any] | None:
        """Return a run, by default the one that began last."""
        query = "SELECT * FROM runs WHERE id = ?" if run else "SELECT * FROM runs ORDER BY rowid DESC LIMIT 1"
        row = self._db.execute(query, (run,) if run else ()).fetchone()
        return dict(row) if row else None

    def runs(self) -> list[dict[str, Any]]:
        """Return all runs, the oldest first."""
        return [dict(row) for row in self._db.execute("SELECT * FROM runs ORDER BY rowid")]

    def identity(self, key: str | None) -> dict[str, Any]:
        """Return what an environment is, by its key."""
        row = self._db.execute("SELECT identity FROM environments WHERE key = ?", (key,)).fetchone()
        return dict(json.loads(row["identity"])) if row else {}

    def unfinished(self) -> list[dict[str, Any]]:
        """Return the attempts that were begun and never came to an end."""
        return self.attempts("ended IS NULL")

    def evidence(self) -> Iterator[Attempt]:
        """Yield what the last finished attempts tell, the oldest first; an entry that cannot be read is left out."""
        query = (
            "SELECT entry FROM attempts WHERE entry IS NOT NULL ORDER BY started DESC, run DESC, number DESC LIMIT ?"
        )
        for row in reversed(self._db.execute(query, (_EVIDENCE,)).fetchall()):
            try:
                yield attempt_of(json.loads(row["entry"])["evidence"])
            except (ValueError, KeyError, TypeError):
                continue

    # ---- private

    def _prepare(self) -> None:
        if (found := self._db.execute("PRAGMA user_version").fetchone()[0]) > VERSION:
            raise InputError(f"{self.path}: was written by a newer logtriage (its form is {found}); update this one")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("BEGIN IMMEDIATE")
        if self._db.execute("PRAGMA user_version").fetchone()[0] == 0:  # nobody else has made the tables meanwhile
            for statement in _TABLES.split(";"):
                self._db.execute(statement)
            self._db.execute(f"PRAGMA user_version = {VERSION}")
        self._db.execute("COMMIT")

    def _write(self, *statements: Statement) -> None:
        self._pending.append([(statement, _bound(values)) for statement, values in statements])
        self._flush()

    def _flush(self) -> None:
        """Write all that is pending, oldest first, each as one transaction; what fails stays pending."""
        while self._pending:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                for statement, values in self._pending[0]:
                    self._db.execute(statement, values)
                self._db.execute("COMMIT")
            except sqlite3.Error as error:
                self._roll_back()
                self._on_trouble(f"the ledger {self.path} cannot be written now ({error}); it is tried again later")
                return
            except BaseException:  # a value that no database takes, say: it would fail for ever
                self._roll_back()
                self._pending.pop(0)
                raise
            self._pending.pop(0)

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")


def _bound(values: Iterable[Any]) -> tuple[Any, ...]:
    """Values as the database takes them: what of a text is no UTF-8 stands in it as `\\udcff`, say."""
    return tuple(
        value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value for value in values
    )
