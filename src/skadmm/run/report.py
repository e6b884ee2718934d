"""The end of a run: which point is the solution, how it ended, and the Result."""

from __future__ import annotations

from typing import Any

import numpy as np

from skadmm import _cancel
from skadmm.problem import existence
from skadmm.problem.certificate import Certificate
from skadmm.problem.kkt import kkt_residual
from skadmm.run.driver import STALLED, Ending, Run, solved
from skadmm.run.prepare import Plan
from skadmm.run.recording import Diagnostics, Iterate
from skadmm.run.result import Result, Status
from skadmm.solvers.last_resorts import missing_last_resort

MIN_GAIN = 1e-12
"""A point recorded during the run is the solution where it is better than the last one by more than this share."""


def finish(run: Run, ending: Ending) -> tuple[Iterate, Ending]:
    """The solution, after the method has finished it, on the clock, and how the run ended.

    Where time has run out, or the run was interrupted, the solution is the point after the last complete step. After a
    divergence it is the last point whose objective was finite.
    """
    if ending.status is not Status.DIVERGED and not ending.cut_short:
        reached = run.last_finite
        if ending.status in (Status.TIME_LIMIT, Status.INTERRUPTED):
            run.take_back()
        else:
            began = _cancel.now()
            run.engine.finish()
            run.counters.seconds += _cancel.now() - began
        _record_last(run, reached)
        run.last_finite = _better(run, ending, reached)
    if not run.problem.backend.local_rows:
        run.engine.close()
    return _revised(run, run.last_finite, ending)


def _record_last(run: Run, reached: Iterate) -> None:
    """Record the solution, where the method has moved it from the point the loop `reached`."""
    if not np.isfinite(run.engine.point.x).all():
        return
    recorder = run.recorder
    answer = run.last_finite = recorder.iterate()
    if recorder.history.rows and not np.array_equal(reached.x, answer.x):
        row = recorder.row(answer, run.recorder.diagnose(answer), run.passes, run.counters.seconds)
        recorder.history.rows.append(row)


def _better(run: Run, ending: Ending, reached: Iterate) -> Iterate:
    """The best of the solution, the point that the loop `reached`, and the best point recorded."""
    recorder, history, answer = run.recorder, run.recorder.history, run.last_finite
    tol = run.limits.tol or 0.0
    if ending.stopped_on == "kkt":
        residual = run.recorder.diagnose(answer).kkt.relative
        if residual > tol and run.recorder.diagnose(reached).kkt.relative <= residual:
            answer = reached  # the last step of the method has increased the objective by more than the tolerance
    if ending.stopped_on != "kkt" or history.best_kkt <= tol:
        diagnostics = run.recorder.diagnose(answer)
        last = recorder.evaluator.criterion(diagnostics)
        # A solver that assesses its points itself has certified this one more accurately than this comparison can.
        certified = diagnostics.by_solver and diagnostics.gap <= tol
        if not certified and history.best_value < last - MIN_GAIN * abs(last):
            dual = history.best_point.dual * (history.best_rho / run.engine.rho)
            answer = history.best_point._replace(dual=dual)
    return answer


def _revised(run: Run, answer: Iterate, ending: Ending) -> tuple[Iterate, Ending]:
    """Decide again how the run ended, because the final answer may meet the tolerance, or may not: a solver knows
    margins to more digits than the answer has where coefficients are very large."""
    tol = run.limits.tol
    claimed = ending.status is Status.SOLVED and ending.stopped_on == "kkt"
    if tol is None or not (claimed or ending.status in (Status.STALLED, Status.PASS_LIMIT)):
        return answer, ending
    best, diagnostics = _best_multiplier(run, answer)
    if claimed:
        return answer, ending if diagnostics.kkt.relative <= tol else STALLED
    gap = _final_gap(run, diagnostics, run.engine.certificate)
    measure, reached = ("gap", gap) if np.isfinite(gap) else ("kkt", diagnostics.kkt.relative)
    if not reached <= tol:  # NaN where numbers have overflowed
        return answer, ending
    return best, solved(measure, reached, tol)


def explained(run: Run, plan: Plan, ending: Ending) -> Ending:
    """The ending, with what explains it added: that there is no minimiser, and why "auto" chose the method."""
    recession = existence.find(plan.problem)
    if recession is not None and (ending.status is not Status.DIVERGED or plan.algorithm.stepless):
        message = f"{recession}; x is the point of the run when {ending.message}"
        ending = ending._replace(status=Status.NO_MINIMISER, message=message)
    beyond = run.run_passes - plan.limits.passes
    if ending.status is Status.PASS_LIMIT and beyond >= 0.5:
        ending = ending._replace(
            message=f"{ending.message}; completing the last step and evaluating the solution took {beyond:.3g} more"
        )
    if run.tuning is not None and run.tuning.cut_short:
        ending = ending._replace(message=f"{ending.message}; it also ended the selection of the step early")
    elif run.tuning is not None and run.tuning.at_edge:
        ending = ending._replace(
            message=f"{ending.message}; the selected step is the {run.tuning.at_edge} of those tried, a better one may "
            "lie beyond"
        )
    if ending.status in (Status.STALLED, Status.PASS_LIMIT) and plan.reason and plan.limits.tol is not None:
        advice = missing_last_resort(plan.working)
        ending = ending._replace(message=f"{ending.message}; {advice}") if advice else ending
    if not plan.reason:
        return ending
    because = f", since {run.engine.reason}" if run.engine.reason else ""
    ran = f"; it ran {run.engine.ran}{because}" if run.engine.solver_name else ""
    return ending._replace(message=f"{ending.message} ({plan.reason}{ran})")


def result(run: Run, answer: Iterate, ending: Ending) -> Result:
    """The result, in the shape of the problem that the user gave, without the part that folding added."""
    recorder, engine, original = run.recorder, run.engine, run.recorder.original
    tables, certificate = engine.tables(), engine.certificate
    quick = ending.status in (Status.TIME_LIMIT, Status.INTERRUPTED)
    answer, diagnostics = _best_multiplier(run, answer, quick=quick)
    gap = _final_gap(run, diagnostics, certificate)
    _revise_last_row(recorder.history.rows, diagnostics, gap)
    scale: dict[str, Any] = {} if recorder.scale is None else {"scale": recorder.scale}
    return Result(
        x=answer.x if original.omega.subdifferentiable else original.within_omega(answer.x),
        y=answer.y[: original.n_split],
        dual=answer.dual[: original.n_constraints],
        x_average=answer.x_average,
        y_average=answer.y_average[: original.n_split],
        status=ending.status,
        message=ending.message,
        method=run.algorithm.name,
        settings=run.settings | {"rho": engine.rho},
        objective=diagnostics.objective,
        feasibility=diagnostics.kkt.feasibility,
        kkt=diagnostics.kkt,
        gap=gap if np.isfinite(gap) else np.nan,
        stopped_on=ending.stopped_on,
        passes=run.passes,
        seconds=run.counters.seconds,
        records=recorder.history.rows,
        tuning=run.tuning,
        selection_passes=0.0 if run.tuning is None else run.tuning.samples_touched / run.problem.n_samples,
        solver=engine.solver_name,
        n_outputs=run.problem.n_outputs,
        tables=tables | scale,  # not copied: the engine has ended
    )


def _final_gap(run: Run, diagnostics: Diagnostics, certificate: Certificate | None) -> float:
    """The relative gap of the answer: with the method's own lower bound where it has one, else with the largest one
    recorded, which may belong to another point than the answer."""
    if certificate is not None:
        return certificate._replace(primal=diagnostics.objective).relative
    lower_bound = max(run.recorder.history.lower_bound, diagnostics.lower_bound)
    bounds = run.recorder.evaluator.certifier.pair(diagnostics.objective, lower_bound)
    return bounds.relative if lower_bound > -np.inf else diagnostics.gap


def _best_multiplier(run: Run, answer: Iterate, *, quick: bool = False) -> tuple[Iterate, Diagnostics]:
    """The answer with the multiplier of the method or with the one that proves its gap, whichever is closer to optimal,
    and with y(x) where the y of the method does not meet the tolerance and y(x) is closer to optimal. `quick` leaves
    out least-squares corrections, which may take as long as a step."""
    diagnostics = run.recorder.diagnose(answer)
    evaluator, rho, x, y, tol = run.recorder.evaluator, run.engine.rho, answer.x, answer.y, run.limits.tol or 0.0
    certifier = evaluator.certifier
    if diagnostics.by_solver and diagnostics.kkt.relative <= tol:
        return answer, diagnostics
    if not run.algorithm.certifies or certifier.kind == "none" or not evaluator.has_y_of_x or not y.size:
        return answer, diagnostics
    scale, multiplier, _ = certifier.dual_point(diagnostics.gradient, rho * answer.dual, None if quick else y == 0)
    best = answer
    for split in (y, run.problem.exact_split(x)):
        if split is None or (split is not y and diagnostics.kkt.relative <= tol):
            break
        kkt = kkt_residual(run.problem, x, split, scale * multiplier, diagnostics.gradient, diagnostics.loss)
        if kkt.relative < diagnostics.kkt.relative:
            best, diagnostics = answer._replace(y=split, dual=scale * multiplier / rho), diagnostics._replace(kkt=kkt)
    return best, diagnostics


def _revise_last_row(rows: list[dict[str, float]], diagnostics: Diagnostics, gap: float) -> None:
    """The last row of the trace is that of the solution: its residuals are those of the multiplier that proves the gap,
    which is known at the end of a run only."""
    if not rows or rows[-1]["objective"] != diagnostics.objective:
        return
    last = rows[-1]
    if diagnostics.kkt.relative < last["kkt"]:
        last |= {"kkt": diagnostics.kkt.relative, "feasibility": diagnostics.kkt.feasibility}
    if not np.isnan(gap):
        last["gap"] = min(last["gap"], gap)
