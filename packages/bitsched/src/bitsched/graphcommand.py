"""What `graph` reports: a task graph scheduled, simulated, bounded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bitsched.gantt import graph_timeline
from bitsched.listscheduling import Schedule, Scheduled, schedule_tasks
from bitsched.plan import counted
from bitsched.simulation import Simulation, simulate
from bitsched.tasklist import TaskList
from bitsched.timeline import Timeline
from papercuts.streams import attach

_MOST_NAMED = 200


@dataclass(frozen=True, eq=False)
class GraphRun:
    """A task graph with its schedule and its simulation."""

    tasks: TaskList
    schedule: Schedule
    scheduled: Scheduled
    simulation: Simulation

    @cached_property
    def bound(self) -> float:
        """No schedule on so many processors takes less."""
        bounds, scheduled = self.simulation.bounds, self.scheduled
        return max(bounds.best, scheduled.path, scheduled.pinned)

    def summary(self) -> dict[str, Any]:
        """Give the record of the whole graph; its critical path is null past 200 tasks."""
        simulation, scheduled = self.simulation, self.scheduled
        path = simulation.critical_path
        named = [self.tasks.ids[t] for t in scheduled.task[path].tolist()]
        return {
            "tasks": self.tasks.tasks,
            "processors": simulation.graph.processors,
            "accumulators": len(self.tasks.accumulators),
            "schedule": self.schedule,
            "makespan": simulation.makespan,
            "work_bound": max(simulation.bounds.work, scheduled.pinned),
            "path_bound": scheduled.path,
            "reduction_bound": simulation.bounds.reduction,
            "load_bound": simulation.bounds.load,
            "bound": self.bound,
            "gap": simulation.makespan / self.bound if self.bound else 1.0,
            "idle_share": simulation.idle_share,
            "critical_path_tasks": len(named),
            "critical_path": named if len(named) <= _MOST_NAMED else None,
        }

    def task_records(self) -> Iterator[dict[str, Any]]:
        """Yield each task as it was read, with its times under the key `bitsched`."""
        simulation, scheduled = self.simulation, self.scheduled
        graph = simulation.graph
        new = np.empty_like(scheduled.task)
        new[scheduled.task] = np.arange(new.size)
        critical = np.zeros(new.size, dtype=bool)
        critical[simulation.critical_path] = True
        columns = zip(
            self.tasks.records,
            graph.processor()[new].tolist(),
            simulation.start[new].tolist(),
            simulation.compute_end[new].tolist(),
            simulation.end[new].tolist(),
            scheduled.place.tolist(),
            critical[new].tolist(),
            strict=True,
        )
        for record, processor, start, computed, end, place, on_path in columns:
            yield attach(
                record,
                "bitsched",
                {
                    "processor": processor,
                    "start": start,
                    "compute_end": computed,
                    "end": end,
                    "rank": None if place < 0 else place,
                    "critical": on_path,
                },
            )

    def timeline(self, unit: str = "") -> Timeline:
        """Give what a chart draws: colours are accumulators."""
        tasks, order = self.tasks, self.scheduled.task
        processors = self.simulation.graph.processors
        return graph_timeline(
            self.simulation,
            what=f"{counted(tasks.tasks, 'task')}, {counted(processors, 'processor')}",
            bound=self.bound,
            group=tasks.into[order],
            name=lambda task: tasks.ids[order[task]],
            unit=unit or "in the unit of the durations",
            group_word="sum",
            group_name=lambda k: tasks.accumulators[k],
            name_says="task",
            processor_word="processor",
        )


def run_graph(
    tasks: TaskList, schedule: Schedule = "list", processors: int | None = None
) -> GraphRun:
    """Schedule and simulate; raises what `schedule_tasks` and `simulate` raise."""
    scheduled = schedule_tasks(tasks, schedule, processors)
    return GraphRun(tasks, schedule, scheduled, simulate(scheduled.graph))
