"""``logtriage schema``: the JSON schema that every report keeps."""

from __future__ import annotations

import json

import click


@click.command("schema")
def command() -> int:
    """Print the JSON schema of the report."""
    from logtriage.report.schema import json_schema

    click.echo(json.dumps(json_schema(), indent=2))
    return 0
