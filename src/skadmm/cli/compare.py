"""``skadmm compare``: several methods on one file of data, on equal terms."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import typer

from skadmm.cli._errors import CommandError
from skadmm.cli.large import open_table
from skadmm.cli.loss_option import loss_of
from skadmm.cli.structure import read_graph, read_groups

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(compare)


def compare(
    data: Path = typer.Argument(help="svmlight, CSV, TSV, Parquet, npy, npz, or a folder of blocks or Parquet files."),  # noqa: B008
    methods: str = typer.Option(
        "auto", help="Names of methods, separated by commas. [default: a few that suit the data]", show_default=False
    ),
    target: str | None = typer.Option(None, help="The column (or npz array) of targets. [default: the last; npz: y]"),
    drop: list[str] | None = typer.Option(None, help="Columns to leave out, separated by commas; may be repeated."),  # noqa: B008
    weight: str | None = typer.Option(None, help="The column of sample weights."),
    loss: str | None = typer.Option(
        None,
        help="A loss, such as huber or 'huber(delta=2)'. [default: logistic for two classes, multinomial for more that "
        "are texts, else squared]",
    ),
    alpha: float = typer.Option(1e-4, help="The strength of the penalty."),
    l1_ratio: float = typer.Option(0.5, "--l1-ratio", help="The share of the plain l1 norm."),
    graph: str = typer.Option("chain", help="chain, precision, a grid such as 8x8, or a file of edges."),
    groups: Path | None = typer.Option(None, help="A JSON file of groups of columns, in place of --graph."),  # noqa: B008
    unknown: str = typer.Option("raise", help="Names in --graph or --groups that are not columns: raise, or ignore."),
    passes: float = typer.Option(20.0, help="Number of passes over the data."),
    repeats: int = typer.Option(3, min=1, help="Number of runs of each method, with different seeds."),
    out: Path | None = typer.Option(None, "--out", "-o", help="Write the whole table to a CSV file."),  # noqa: B008
    plot: Path | None = typer.Option(None, "--plot", help="Write a picture of the objective against passes."),  # noqa: B008
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:  # fmt: skip
    """Compare several methods on one problem."""
    from skadmm import Problem
    from skadmm import compare as run

    table = open_table(data, target, drop, weight=weight, ones=False, levels=False)
    if loss is None:
        loss = _default_loss(np.asarray(table.target))
    X, names = table.X, None
    if hasattr(X, "columns"):
        X, names = X.to_numpy(dtype=float), [str(name) for name in X.columns]
    chosen = ["sa-admm", "sa-iu-admm", "opg-admm", "rda-admm", "san-admm"]
    if methods != "auto":
        chosen = [name.strip() for name in methods.split(",") if name.strip()]
    penalty = _penalty(X, names, graph, groups, unknown, l1_ratio)
    problem = Problem(
        X, table.target, loss=loss_of(loss), psi=penalty.psi(alpha), A=penalty.A, sample_weight=table.weight
    )
    frame = run(problem, chosen, repeats=repeats, passes=passes, record_every=max(passes / 20, 0.5))
    if frame.attrs["interrupted"]:
        raise CommandError("interrupted; nothing was written", 130)
    if out is not None:
        frame.to_csv(out, index=False)
    if plot is not None:
        import matplotlib as mpl

        mpl.use("Agg")
        from skadmm.plotting import comparison

        cast("Figure", comparison(frame).figure).savefig(plot, dpi=150)
    last = frame.sort_values("record").groupby(["method", "repeat"], sort=False).last()
    shown = ["objective", "run_passes", "selection_passes", "run_seconds", "selection_seconds"]
    ends = last.groupby("method", sort=False)[shown].mean().sort_values("objective")
    if as_json:
        print(json.dumps({"methods": ends.reset_index().to_dict(orient="records")}))
        return
    print(f"{'method':<16}{'objective':>14}{'passes':>10}{'+ selection':>13}{'seconds':>10}{'+ selection':>13}")
    for method, row in ends.iterrows():
        objective, passes, selection, seconds, selecting = row
        print(f"{method:<16}{objective:>14.8f}{passes:>10.1f}{selection:>13.1f}{seconds:>10.3f}{selecting:>13.3f}")
    print("selection: the cost of choosing the step, in addition to the run")
    for failure in frame.attrs["failures"]:
        print(f"skadmm: {failure['method']}: {failure['message']}", file=sys.stderr)


def _default_loss(target: np.ndarray) -> str:
    """The loss for a target of two classes, of more classes (texts), or of numbers; a line says where it is another
    than the first."""
    if np.unique(target).size <= 2:
        return "logistic"
    loss = "multinomial" if target.dtype.kind in "OUS" else "squared"
    print(f"skadmm: the target has more than two values: --loss {loss}", file=sys.stderr)
    return loss


def _penalty(X: Any, names: list[str] | None, graph: str, groups: Path | None, unknown: str, l1_ratio: float) -> Any:
    """The penalty of the fused lasso on the graph, or of the lasso over the groups."""
    from skadmm.estimators._graphs import feature_graph
    from skadmm.estimators._groups import checked_groups, group_penalty
    from skadmm.estimators._penalty import Penalty, checked_ratio, with_l1

    if unknown not in ("raise", "ignore"):
        raise CommandError(f"--unknown {unknown}: it takes raise or ignore", 2)
    if groups is not None and graph != "chain":
        raise CommandError(f"--groups {groups} and --graph {graph}: it takes one of them", 2)
    ratio = checked_ratio(l1_ratio)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if groups is None:
            edges = feature_graph(read_graph(graph, names or ()), X, names, unknown=unknown)
            penalty = Penalty(with_l1(edges.matrix(), ratio))
        else:
            members = checked_groups(read_groups(groups, names or ()), X.shape[1], names, unknown)
            penalty = group_penalty(members, X.shape[1], "sqrt", ratio)
    for note in caught:
        print(f"skadmm: {' '.join(str(note.message).split())}", file=sys.stderr)
    return penalty
