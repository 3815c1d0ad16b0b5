"""The smoke test: asks a running server known questions, alone and under load, and says whether it answers sensibly.

In: a base URL. Out: a result with the answers; where they are garbage, with the finding. Waits, but never for ever.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from logtriage.answers import Finding
from logtriage.runner import asking, client, findings, readiness
from logtriage.runner.asking import Refused, Told
from logtriage.runner.prompts import Asked, Prompts, load

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from logtriage.runner.findings import Phase, Row

_BROKEN = 3  # answers that are garbage; no more need to be asked alone
_SAMPLES = 6
_SAMPLED_AT = 0.7


class SmokeResult(NamedTuple):
    """What a smoke test found.

    Attributes:
        passed: the server answers, and nothing is wrong with its answers.
        finding: what is wrong with the answers; None where nothing is, or where there are none.
        because: one sentence that says why it passed or not.
        answers: every answer, in the order of asking.
        bodies: the responses as they came, for `pipeline.Options.responses`; those that were excused are left out.
        label: `healthy`, `degenerate-output`, `incomplete` (not ready yet, or stopped), or `unknown` (ready, and it
            does not answer); None where no SGLang server answers at all.
        notes: what is worth knowing and proves nothing.
    """

    passed: bool
    finding: Finding | None
    because: str
    answers: tuple[Row, ...] = ()
    bodies: tuple[bytes, ...] = ()
    label: str | None = None
    notes: tuple[str, ...] = ()


def run(
    base_url: str,
    *,
    prompts: Prompts | str | os.PathLike[str] | None = None,
    model: str | None = None,
    api_key: str | None = None,
    stop: client.Stop | None = None,
) -> SmokeResult:
    """Ask the server at `base_url` and return what its answers are worth.

    `prompts` is what `prompts.load` returned or the path of a user's file. `stop` is asked ten times a second and ends
    the test. Takes at most `limits.total_s` seconds. Raises InputError for a file or a URL that cannot be understood.
    """
    asked = prompts if isinstance(prompts, Prompts) else load(prompts)
    base = client.base_of(base_url)
    state = readiness.check(base, api_key=api_key, timeout_s=10.0)
    if state.state != "ready":
        label = "incomplete" if state.state == "warming" else None
        return SmokeResult(False, None, f"{_STATES[state.state]}: {state.detail}", label=label)
    if not state.generates:
        because = f"{state.model} generates no text (an embedding or reward model): there is nothing to ask"
        return SmokeResult(True, None, because, label="healthy")
    test = _Test(asked, model)
    done = client.run(test.bounded(base, api_key), stop)
    return done or test.result(Refused("stopped", "stopped before the end"))


_STATES = {"down": "nothing listens", "warming": "not ready yet", "foreign": "no SGLang server"}


class _Test:
    """One smoke test: its rows grow while it runs, so that a stop keeps those that came."""

    def __init__(self, prompts: Prompts, model: str | None) -> None:
        self._prompts = prompts
        self._model = model
        self._form = asking.Form()
        self._rows: list[Row] = []
        self._notes: list[str] = []

    async def bounded(self, base: str, api_key: str | None) -> SmokeResult:
        total_s = self._prompts.limits.total_s
        refused: Refused | None
        try:
            async with asyncio.timeout(total_s), client.Client(base, api_key) as server:
                refused = await self._ask_all(server)
        except TimeoutError:
            refused = Refused("timeout", f"the smoke test did not end within {total_s:g} s")
        return self.result(refused)

    def result(self, refused: Refused | None) -> SmokeResult:
        """Return what the answers so far are worth; `refused` is why there are no more."""
        rows = tuple(self._rows)
        let_off = {id(row) for row in findings.excused(rows)}
        bodies = tuple(row.told.body for row in rows if id(row) not in let_off)
        finding = findings.conclude(rows)
        if refused and refused.kind == "nan":
            finding = Finding("nan-logprobs", f"logprobs that JSON cannot hold (NaN): {refused.detail}", 0.95)
        notes = (*self._notes, *([] if finding else findings.notes(rows)))
        if finding:
            return SmokeResult(False, finding, finding.because, rows, bodies, "degenerate-output", notes)
        if refused and refused.kind == "no-text":
            return SmokeResult(True, None, refused.detail, label="healthy")
        if refused:
            label = "incomplete" if refused.kind == "stopped" else "unknown"
            return SmokeResult(False, None, refused.detail, rows, bodies, label, notes)
        known = [row for row in rows if row.as_expected is not None]
        right = sum(1 for row in known if row.as_expected)
        because = f"{len(rows)} answers, nothing is wrong with them; {right} of {len(known)} known answers were given"
        return SmokeResult(True, None, because, rows, bodies, "healthy", notes)

    async def _ask_all(self, server: client.Client) -> Refused | None:
        """Ask everything that is needed; return why that was not possible, or None."""
        asked, limits = self._prompts.asked, self._prompts.limits
        found = await asking.find_form(server, asked[0].prompt, self._model, limits.answer_s)
        if isinstance(found, Refused):
            if found.kind == "status" and await asking.takes_no_text(server, limits.answer_s):
                return Refused("no-text", "it runs without a tokenizer and takes no text: its answers cannot be judged")
            return found._replace(detail=f"{asked[0].name}: {found.detail}")
        self._form = found.form
        self._note_form(found)
        self._rows.append(findings.row(asked[0], "alone", found.told))
        for one in asked:
            if len(self._broken()) >= _BROKEN:
                break
            if refused := await self._ask(server, one, "again" if one is asked[0] else "alone"):
                return refused
        if refused := await self._sample(server):
            return refused
        if findings.conclude(self._rows):
            return None
        return await self._ask_at_once(server, self._loaded(), "parallel")

    def _loaded(self) -> list[Asked]:
        """What is asked at once: everything, and again from the start until there are enough."""
        asked, parallel = self._prompts.asked, self._prompts.limits.parallel
        return [asked[number % len(asked)] for number in range(max(len(asked), parallel))]

    async def _sample(self, server: client.Client) -> Refused | None:
        """Ask what loops at temperature 0 again at a higher one: small sane models loop as well, but only there."""
        looping = list({row.asked.name: row.asked for row in self._rows if row.finding}.values())
        if not looping or self._broken():
            return None
        return await self._ask_at_once(server, [looping[n % len(looping)] for n in range(_SAMPLES)], "sampled")

    def _broken(self) -> list[Row]:
        """The answers that are garbage whatever the size of the model: those with loops need a second look."""
        return [row for row in self._rows if row.finding and row.finding.kind not in findings.LOOPS]

    async def _ask_at_once(self, server: client.Client, asked: Iterable[Asked], phase: Phase) -> Refused | None:
        gate = asyncio.Semaphore(self._prompts.limits.parallel)

        async def wait_and_ask(one: Asked, seed: int) -> Refused | None:
            async with gate:
                return await self._ask(server, one, phase, seed)

        done = await asyncio.gather(*(wait_and_ask(one, seed) for seed, one in enumerate(asked)))
        return next((refused for refused in done if refused), None)

    async def _ask(self, server: client.Client, one: Asked, phase: Phase, seed: int = 0) -> Refused | None:
        hot = phase == "sampled"
        told = await asking.ask(
            server, self._form, one.prompt, self._prompts.limits.answer_s,
            temperature=_SAMPLED_AT if hot else 0.0, seed=seed if hot else None,
        )  # fmt: skip
        if isinstance(told, Told):
            self._rows.append(findings.row(one, phase, told))
            return None
        return told._replace(detail=f"{one.name}, {phase}: {told.detail}")

    def _note_form(self, found: asking.Found) -> None:
        if found.form.path == asking.TEXT:
            self._notes.append(f"asked as text to go on with, since as a chat {found.refused}")
        elif not found.form.logprobs:
            self._notes.append(f"without logprobs, since with them {found.refused}")
