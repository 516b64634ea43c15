"""The command line as `python -m tuplet`."""

from tuplet.surface.cli import main

main()
