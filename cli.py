"""The command line from a checkout: ``python cli.py analyze run.log``."""

from logtriage.cli.main import main

if __name__ == "__main__":
    main()
