"""The commands of ``logtriage``: finds the one that is called, turns every error into one message and an exit code."""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module

import click

from logtriage._version import __version__
from logtriage.cli import exit_codes, output
from logtriage.errors import RuleError, TriageError
from logtriage.report import plain

COMMANDS = {
    "analyze": ("analyze", "Say what went wrong first in the log of an SGLang launch."),
    "next": ("next", "Print the next command to try after a failed launch."),
    "preflight": ("preflight", "Say what will fail before a command is launched."),
    "run": ("run", "Launch a server, judge it, and fall back until a configuration works."),
    "ledger": ("ledger", "Show and change what is remembered of earlier launches."),
    "smoke": ("smoke", "Ask a running server known questions: do its answers make sense?"),
    "explain": ("explain", "Say what a label means, or which rules fired on a line of a log."),
    "rules": ("rules", "List, lint and test the rules."),
    "corpus": ("corpus", "File logs with their labels, check them, generate some."),
    "train": ("train", "Train the classifier for failures that no rule knows."),
    "evaluate": ("evaluate", "Compare the verdicts on a corpus with those that stand beside its logs."),
    "schema": ("schema", "Print the JSON schema of the report."),
}
"""Each command's module and its one-line help, which is shown without importing the module."""

EPILOG = """\b
Exit codes: 0 healthy, 1 a failure with a label, 2 usage or unreadable input or broken rules,
            3 unknown (or no SGLang launch), 4 incomplete or empty, 70 internal error, 130 interrupted.
            They stay the same where the reader of the report goes away (`| head`).
Example:    logtriage analyze run.log"""


class LazyGroup(click.Group):
    """Imports a command's module when the command is called or its own help is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of their use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name."""
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"logtriage.cli.{COMMANDS[cmd_name][0]}").command
        assert isinstance(command, click.Command)  # noqa: S101 - every module has one
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is called; a name that is none, but near one or a file, gets a suggestion."""
        name = args[0]
        if name in COMMANDS or name.startswith("-"):
            return super().resolve_command(ctx, args)
        if os.path.exists(name):
            shown = plain.one_line(name)
            raise click.UsageError(f"no command {name!r}. Did you mean `logtriage analyze {shown}`?", ctx)
        from difflib import get_close_matches

        near = get_close_matches(name, COMMANDS, n=1)
        raise click.UsageError(f"no command {name!r}." + (f" Did you mean {near[0]!r}?" if near else ""), ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="logtriage", message="%(prog)s %(version)s")
def cli() -> None:
    """Say why an SGLang launch died, show the line that proves it, and recommend the next step."""


def run(words: list[str]) -> int:
    """Run the command line and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without UTF-8 shows a question mark, not a traceback
    split = words.index("--") if "--" in words else len(words)
    try:
        code = cli.main(words[:split], prog_name="logtriage", standalone_mode=False, obj=words[split + 1 :])
        output.finish()
    except click.ClickException as error:
        message = io.StringIO()
        error.show(message)
        output.complain(message.getvalue().rstrip())
        if isinstance(error, click.NoSuchOption) and words[:1] in (["run"], ["preflight"]) and "--" not in words:
            output.complain(f"The command goes after --, as in `logtriage {words[0]} -- python3 -m …`.")
        return exit_codes.USAGE
    except RuleError as error:
        head = str(error).partition("\n")[0]
        output.complain("\n".join([f"logtriage: {head}", *(f"  {plain.one_line(fault)}" for fault in error.faults)]))
        return exit_codes.USAGE
    except (TriageError, RecursionError) as error:
        output.complain(plain.one_line(f"logtriage: {error}"))
        return exit_codes.USAGE
    except (click.Abort, KeyboardInterrupt):
        return exit_codes.INTERRUPTED
    except SystemExit:  # click's own way out where the reader of a help text has gone
        return exit_codes.NO_READER
    except OSError as error:  # a full disk, say
        output.drop()
        output.complain(plain.one_line(f"logtriage: {error.filename or 'standard output'}: {error.strerror or error}"))
        return exit_codes.USAGE
    except Exception as error:
        if os.environ.get("LOGTRIAGE_DEBUG"):
            raise
        output.complain(plain.one_line(f"logtriage: internal error: {error!r}"))
        output.complain("This is a defect; LOGTRIAGE_DEBUG=1 shows where it happened.")
        return exit_codes.INTERNAL
    return code if isinstance(code, int) else 0
