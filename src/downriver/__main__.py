"""`python -m downriver`."""

from downriver.cli import main

main()
