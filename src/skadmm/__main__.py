"""``python -m skadmm``: the command line."""

from skadmm.cli import main

main()
