"""The model's own files: whether they can be loaded, and whether their quantization suits the GPU and the command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logtriage.advice.preflight.finding import FAILS, OK, RISK, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from logtriage.advice.preflight.finding import Question

_OVERWRITE = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"
_SOURCE = "sglang 0.5.5 to 0.5.23 source"
_MOST = 5


def check(question: Question) -> Iterator[Finding]:
    """Yield what is wrong with the files of the model, and with the quantization and context that are asked of it."""
    for flag, path in question.environment.absent:
        yield Finding("flag-path", FAILS, f"{flag} {path} does not exist", flag=flag, value=path, label="model-load")
    model = question.model
    if model is not None:
        weightless = question.flag("--load-format") == "dummy"
        faults = [*model.faults, *(() if weightless else model.weight_faults)]
        for fault in faults[:_MOST]:
            yield Finding("model-files", FAILS, fault, flag="--model-path", label="model-load")
        if len(faults) > _MOST:
            yield Finding("model-files", FAILS, f"and {len(faults) - _MOST} more files like these", label="model-load")
        if model.remote_code and not question.is_on("--trust-remote-code"):
            what = "The model brings its own code, and --trust-remote-code is not given"
            why = "SGLang refuses that for models that it does not know itself"
            yield Finding("remote-code", RISK, what, why=why, flag="--trust-remote-code", label="unsupported-config")
        yield from _agreement(question)
        yield from _context(question)


def _agreement(question: Question) -> Iterator[Finding]:
    """The quantization of the command against that of the files."""
    asked, model = question.flag("--quantization"), question.model
    if asked is None or model is None or model.method is None:
        return
    servers = question.servers
    own, wanted = servers.format_of(model.quantization), servers.format_of(asked)
    about = Finding("quantization-files", OK, "", flag="--quantization", value=asked, source="the model's own files")
    if own is not None and wanted is not None and own != wanted:
        what = f"--quantization {asked} is {wanted}, and the model's files are {own} ({model.method})"
        yield about.replace(severity=FAILS, what=what, label="unsupported-config")
    elif own is not None and own == wanted:
        yield about.replace(what=f"--quantization {asked} is that of the model's files ({model.method})")


def _context(question: Question) -> Iterator[Finding]:
    own = question.model.config.get("context") if question.model else None
    asked = question.number("--context-length", 0)
    if own is None or asked <= own or question.launch.env.get(_OVERWRITE, "").lower() in ("1", "true"):
        return
    what = f"--context-length {asked} is more than the {own} of the model"
    yield Finding("context-length", RISK, what, why=f"SGLang refuses that unless {_OVERWRITE}=1 is set",
                  source=_SOURCE, flag="--context-length", value=str(asked), label="unsupported-config")  # fmt: skip
