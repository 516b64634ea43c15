"""The command line as `python -m tuplet`."""

from tuplet.cli import main

main()
