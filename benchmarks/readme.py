"""Update the short benchmark table of the README from docs/benchmarks.md: ``python benchmarks/readme.py``."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE, README = ROOT / "docs" / "benchmarks.md", ROOT / "README.md"
START, END = "<!-- benchmarks/readme.py: from docs/benchmarks.md -->\n", "<!-- end -->"
LEVEL = "1e-06"


def short_table(page: str) -> str:
    """Every data set at LEVEL: the best times of skadmm and of the others in GPE, and their ratio."""
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if f" | {LEVEL} | `" in line]
    lines = ["| problem | skadmm | best other | its time | ratio |", "|---|---|---|---|---|"]
    for data, _, _, _, ours, other, _, theirs, ratio in rows:
        name = other.strip("`").split("[")[0].replace("none", "–")
        lines.append(f"| {data} | {ours} | {name} | {theirs} | {ratio} |")
    return "\n".join(lines) + "\n"


def filled(readme: str, page: str) -> str:
    """The README with the table of the page."""
    before, rest = readme.split(START)
    _, after = rest.split(END, 1)
    return before + START + short_table(page) + END + after


if __name__ == "__main__":
    text = filled(README.read_text(encoding="utf-8"), PAGE.read_text(encoding="utf-8"))
    README.write_text(text, encoding="utf-8")
