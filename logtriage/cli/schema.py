"""``logtriage schema``: the JSON schema that every report keeps."""

from __future__ import annotations

import json

import click

from logtriage.cli import output


@click.command("schema")
def command() -> int:
    """Print the JSON schema of the report."""
    from logtriage.report.schema import json_schema

    output.write(json.dumps(json_schema(), indent=2) + "\n")
    return 0
