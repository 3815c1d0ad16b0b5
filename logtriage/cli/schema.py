"""``logtriage schema``: the JSON schemas that what is printed as JSON keeps."""

from __future__ import annotations

import json

import click

from logtriage.cli import output


@click.command("schema")
@click.argument("what", type=click.Choice(["report", "preflight"]), default="report")
def command(what: str) -> int:
    """Print the JSON schema of the report, or that of preflight."""
    if what == "preflight":
        from logtriage.report import preflight_schema

        schema = preflight_schema.json_schema()
    else:
        from logtriage.report.schema import json_schema

        schema = json_schema()
    output.write(json.dumps(schema, indent=2) + "\n")
    return 0
