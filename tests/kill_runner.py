"""Kills runners at many points of a run and looks at what is left: `python -m tests.kill_runner FOLDER [POINTS]`.

A point is a call or a return of one of the runner's functions: between any two of them a power cut may come. One line
of JSON is printed for each point. Everything runs in forks of this process, several at a time.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import traceback
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from logtriage import following, pipeline
from logtriage.runner import environment, ledger, orphans, session
from tests import running

if TYPE_CHECKING:
    from collections.abc import Sequence

    from logtriage.engine.ruleset import RuleSet

Point = tuple[str, str, int]
"""An event (`call` or `return`), a function, and how often it has to come."""


def main(folder: Path, most: int) -> None:
    """Run once to learn the points, then once for each of them."""
    rules = pipeline.load_rules()
    rules.server["runner"] = running.quick(rules.server["runner"], 60, 600)
    os.environ["FAKE_STAGE_S"] = "0.01"
    (folder / "prompts.yaml").write_text("builtin: false\nprompts: [{ask: What is the capital of France?}]\n")
    machine = environment.probe(running.command(1), rules)
    session.environment.probe = lambda *_, **__: machine  # type: ignore[assignment]
    points = learn(folder, rules)
    chosen = [points[number * len(points) // most] for number in range(most)] if most < len(points) else points
    waiting, busy = list(enumerate(chosen)), {}
    while waiting or busy:
        if waiting and len(busy) < 4:
            number, point = waiting.pop(0)
            busy[fork(folder / str(number), rules, point)] = (number, point)
            continue
        pid, status = os.wait()
        if pid in busy:
            number, point = busy.pop(pid)
            print(json.dumps(looked_at(folder / str(number), rules, point, status)), flush=True)


def learn(folder: Path, rules: RuleSet) -> list[Point]:
    """All points, in the order of a run that is not killed."""
    _, status = os.waitpid(fork(folder / "whole", rules, None), 0)
    assert status == 0, (folder / "whole" / "trouble").read_text()
    counts = Counter((folder / "whole" / "events").read_text().splitlines())
    often = {event: 2 if count == 2 else 1 for event, count in counts.items()}  # what comes twice comes once an attempt
    return [(*event.split(), times) for event in counts for times in range(1, often[event] + 1)]  # type: ignore[misc]


def fork(folder: Path, rules: RuleSet, point: Point | None) -> int:
    """Run in a child that kills itself at a point; return its process id."""
    folder.mkdir()
    if (pid := os.fork()) != 0:
        return pid
    try:
        watch(folder, point)
        one(folder, rules)
        sys.setprofile(None)
    except BaseException:
        (folder / "trouble").write_text(traceback.format_exc())
        os._exit(1)
    os._exit(0)


def watch(folder: Path, point: Point | None) -> None:
    """Count the calls of the runner's functions; at the point, die; without one, write them down."""
    log = None if point else (folder / "events").open("w")
    count = 0

    def look(frame: Any, event: str, _: Any) -> None:
        nonlocal count
        code = frame.f_code
        if event not in ("call", "return") or "/logtriage/runner/" not in code.co_filename:
            return
        name = f"{Path(code.co_filename).stem}.{code.co_qualname.replace(' ', '')}"
        if log is not None:
            print(event, name, file=log, flush=True)
        elif point is not None and (event, name) == point[:2]:
            count += 1
            if count == point[2]:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(look)


def one(folder: Path, rules: RuleSet) -> None:
    """Two attempts, the second of which works; what is launched and what is over is written down at once."""
    words = running.command(running.free_port(), "--moe-runner-backend", "flashinfer_trtllm")
    run = running.session(
        folder, rules, words, running.Told(), grace=0.01, prompts=str(folder.parent / "prompts.yaml")
    )  # fmt: skip
    (folder / "run").write_text(run.run)
    run._on_entry = lambda entry, _: (folder / f"over-{entry['number']}").touch()  # type: ignore[method-assign,assignment]
    outcome = run.execute()
    run.close()
    assert running.labels(outcome.entries) == ["sm100-only-kernel", "healthy"], outcome


def looked_at(folder: Path, rules: RuleSet, point: Point, status: int) -> dict[str, Any]:
    """What a killed run has left, what the next one says about it, and what --resume leaves."""
    run = (folder / "run").read_text() if (folder / "run").exists() else "none"
    left = {process.pid for process in running.marked(run)}
    path = str(folder / "ledger.sqlite")
    with sqlite3.connect(path) as db:
        is_whole = db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    book = ledger.Ledger(path)
    rows = {row["number"]: row for row in book.attempts("run = ?", (run,))}
    over = sorted(int(mark.name.partition("-")[2]) for mark in folder.glob("over-*"))
    named, resumed = running.Told(), running.Told()
    orphans.settle(book, None, rules, following.system_clock(), named)
    still = {process.pid for process in running.marked(run)}  # some servers have failed by themselves meanwhile
    unnamed = sorted(pid for pid in left & still if not is_named(pid, named.notes))
    orphans.settle(book, run, rules, following.system_clock(), resumed)
    result = {
        "point": point,
        "killed": os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL,
        "trouble": (folder / "trouble").read_text() if (folder / "trouble").exists() else "",
        "is_whole": is_whole,
        "left": sorted(left),
        "unnamed": unnamed,
        "lost": [number for number in over if number not in rows or rows[number]["entry"] is None],
        "still_left": sorted(process.pid for process in running.marked(run)),
        "still_open": [row["id"] for row in book.unfinished()],
    }
    book.close()
    return result


def is_named(pid: int, notes: Sequence[str]) -> bool:
    """Whether a note names a process."""
    return any(f"pid {pid} " in f"{note} " for note in notes)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10_000)
