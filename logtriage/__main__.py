"""``python -m logtriage`` is the command ``logtriage``."""

from logtriage.cli.main import main

main()
