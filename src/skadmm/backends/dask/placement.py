"""Tasks that were placed on one worker each, and may run on any other once it is gone.

Dask keeps the address that a task was placed on for as long as it keeps the task. If all workers are gone for a moment,
tasks that are lost with them wait for this address, even where ``allow_other_workers=True``: the scheduler asks only
whether a new worker has it, so that they would wait forever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed import Scheduler


def free_tasks(keys: list[Any], dask_scheduler: Scheduler) -> None:
    """Let the tasks of these keys, and all that they need, run on any worker; and start tasks that may run on any
    worker and wait for one that is gone. Runs on the scheduler."""
    found = {dask_scheduler.tasks[key] for key in keys if key in dask_scheduler.tasks}
    left = list(found)
    while left:
        task = left.pop()
        if task.loose_restrictions:
            task.worker_restrictions, task.loose_restrictions = None, False
        new = task.dependencies - found
        found |= new
        left += new
    stuck = [task for task in dask_scheduler.unrunnable if _waits_for_nobody(dask_scheduler, task)]
    if dask_scheduler.running and stuck:
        dask_scheduler.transitions({task.key: "processing" for task in stuck}, "skadmm-free-tasks")


def _waits_for_nobody(scheduler: Scheduler, task: Any) -> bool:
    """Could this task run on any worker, while none of those that it was placed on is there?"""
    valid = scheduler.valid_workers(task)
    return valid is None or (task.loose_restrictions and not valid)
