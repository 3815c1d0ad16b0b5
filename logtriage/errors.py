"""The errors that a user can cause, each with a message that says what, where and what to do."""


class TriageError(Exception):
    """Base of all errors that are reported as one message and exit code 2, never as a traceback."""


class InputError(TriageError):
    """A log, response or option that cannot be read or understood."""


class NoLogError(InputError):
    """A file that is plainly no log, or cannot be unpacked here; one of a folder or an archive is passed over.

    Attributes:
        why: why it is passed over, in a few words.
    """

    def __init__(self, message: str, why: str = "no text") -> None:
        self.why = why
        super().__init__(message)


class RuleError(TriageError):
    """One or more faults in rule files.

    Attributes:
        faults: every fault found, each as ``file:line: what is wrong``.
    """

    def __init__(self, faults: list[str]) -> None:
        self.faults = sorted(faults)
        count = len(faults)
        head = f"{count} fault{'s' if count != 1 else ''} in rule files:"
        super().__init__("\n".join([head, *(f"  {fault}" for fault in self.faults)]))
