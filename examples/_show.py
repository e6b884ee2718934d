"""Where an example's picture goes: onto the screen, or into a folder given on the command line."""

import sys
from pathlib import Path

import matplotlib as mpl

if len(sys.argv) > 1:
    mpl.use("Agg")


def show(ax, name):
    """Save the figure of `ax` as `name` in the folder named on the command line, or show it."""
    figure = ax.figure
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(folder / name, dpi=130)
        print(f"the picture is {folder / name}")
    else:
        import matplotlib.pyplot as plt

        plt.show()
