"""A training run from a command line: the log, the state that it resumes from, the checkpoint.

While it runs, FILE.part holds the state after the last iteration and FILE's log grows; at the end
FILE appears, with the network that validated best, and FILE.part goes.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

from safetensors.torch import save

from papercuts.errors import DataError, InputError, NegativeResult, OutputError, UsageError
from papercuts.files import check_output, create, open_output, reason
from papercuts.jsontext import dumps
from papercuts.log import get_logger
from satguide import checkpoint as checkpoints
from satguide import prior as priors
from satguide.backends import backend
from satguide.checkpoint import Checkpoint
from satguide.costs import Meter
from satguide.families.spec import Stream
from satguide.guidance import measures
from satguide.models import load
from satguide.network import GuidanceNetwork, Shape
from satguide.trainer import Diverged, Settings, Source, Trainer

Watcher = Callable[[dict[str, Any]], None]
logger = get_logger(__name__)


@dataclass(frozen=True)
class Run:
    """Where a training run writes, and how long it goes on."""

    output: str
    log: str
    iterations: int | None = 600
    minutes: float | None = None
    validate_every: int = 10
    force: bool = False
    resume: bool = False
    plot: str | None = None

    @property
    def part(self) -> Path:
        """The file that holds the state of the unfinished run."""
        return Path(self.output + ".part")


@dataclass
class _Progress:
    """What a run remembers beside the trainer."""

    wall_s: float = 0.0
    baselines: dict[str, float] = field(default_factory=dict)
    seen: dict[str, tuple[float, float]] = field(default_factory=dict)


def default_log(output: str) -> str:
    """Where the log of a run goes when no place is named: beside the checkpoint."""
    return str(Path(output).with_suffix(".jsonl"))


def source(text: str, validation: int) -> tuple[Source, dict[str, str]]:
    """Give the formulas that `gen:FAMILY:SIZES` or a folder stands for, and what to note of them.

    A folder keeps at most `validation` of its formulas for validation.
    """
    if text.startswith("gen:"):
        return Stream.parse(text), {}
    from satguide.folder import Folder

    folder = Folder(text, validation)
    return folder, {"files": folder.digest()}


def begin_with(
    init: str | None,
    *,
    width: int | None = None,
    layers: int | None = None,
    symmetric: bool = False,
    whiten: bool = False,
    prior: str | None = None,
) -> tuple[Shape, GuidanceNetwork | None]:
    """Give the shape of the network to train, and the network of the checkpoint `init`.

    Raises `UsageError` for an option that says how a new network begins, beside `init`.
    """
    if init is None:
        usual = Shape()
        made = (usual.width if width is None else width, usual.layers if layers is None else layers)
        return Shape(*made, symmetric), None
    given = {
        "--width": width is not None,
        "--layers": layers is not None,
        "--symmetric": symmetric,
        "--whiten": whiten,
        "--prior": prior is not None,
    }
    for option, there in given.items():
        if there:
            raise UsageError(f"{option} is for a new network, --init goes on with one")
    network = load(init).network
    return network.shape, network


def train(
    formulas: str,
    settings: Settings,
    meter: Meter,
    run: Run,
    *,
    init: GuidanceNetwork | None = None,
    origin: dict[str, str] | None = None,
    prior: str | None = None,
    watch: Watcher | None = None,
) -> Checkpoint:
    """Train until `run` says, write the checkpoint and give it; `watch` gets every log record.

    `origin` says where the network `init` is from, for the provenance (`satguide.models.origin`);
    `prior` is a file or a folder of weights to begin with (`satguide.prior`).
    Raises `OutputError` before anything is computed where the output exists (without `force`),
    an unfinished run is there (without `resume` or `force`) or another run is at it, `UsageError`
    for a run that resumes with other settings or a solver that cannot be guided, and `DataError`
    for a state that is not one and where the solver's costs are not known.
    """
    _check_start(run, meter)
    with _locked(Path(run.output + ".lock"), passing=True):
        _check_places(run)
        # A resumed run has the fit behind it.
        table = None if prior is None or run.resume else priors.read(prior)
        drawn, noted = source(formulas, settings.validation)
        trainer = Trainer(drawn, settings, meter, init=init, prior=table)
        progress = _Progress()
        about = {
            "source": formulas,
            "settings": settings.as_dict(),
            "meter": _measured_by(meter),
            "validate_every": run.validate_every,
            "init": origin,
            "prior": None if prior is None else priors.origin(prior),
            **noted,
        }
        if run.resume:
            _restore(trainer, progress, run, about)
        with _log(run, trainer.iteration) as log:
            _iterate(trainer, progress, run, about, log, watch)
        made = about | _provenance(trainer, progress)
        finished = Checkpoint(trainer.best, settings.sigma, made)
        checkpoints.write(run.output, finished, force=run.force)
        run.part.unlink(missing_ok=True)
    if run.plot is not None:
        from satguide.training_plot import plot_training

        plot_training(run.log, run.plot, what=meter.cost, force=run.force)
    return finished


def _iterate(
    trainer: Trainer,
    progress: _Progress,
    run: Run,
    about: dict[str, Any],
    log: BinaryIO,
    watch: Watcher | None,
) -> None:
    start = time.perf_counter() - progress.wall_s
    if not progress.baselines:
        progress.baselines = trainer.baselines()
        progress.seen = _range(trainer)
    if all(map(math.isinf, progress.baselines.values())):
        raise DataError(
            f"nothing to learn from: {trainer.meter.backend} tells the {trainer.meter.cost} of no"
            " validation formula (it does not count them, or a limit came first each time)"
        )
    base = min(progress.baselines.values())

    def finished() -> bool:
        if run.minutes is not None and progress.wall_s >= 60 * run.minutes:
            return True
        return run.iterations is not None and trainer.iteration >= run.iterations

    while not finished():
        try:
            record = trainer.step()
        except Diverged as error:
            advice = "a smaller --lr may help"
            if trainer.best_cost is None:
                raise NegativeResult(f"training diverged: {error} ({advice})") from error
            kept = f"the network of iteration {trainer.best_iteration} is kept"
            logger.warning("training diverged: %s; %s (%s)", error, kept, advice)
            return
        progress.wall_s = time.perf_counter() - start
        if trainer.iteration % run.validate_every == 0 or finished():
            cost = trainer.validate()
            record |= {"validation": cost, "ratio": cost / base if base else None}
            record |= {f"baseline_{name}": value for name, value in progress.baselines.items()}
            progress.wall_s = time.perf_counter() - start
        record["wall_s"] = progress.wall_s
        log.write(dumps(record))
        _save(trainer, progress, run, about)
        if watch is not None:
            watch(record)


def _range(trainer: Trainer) -> dict[str, tuple[float, float]]:
    """Give the measures between which the validation formulas lie."""
    found = [measures(cnf) for cnf in trainer.validation_formulas()]
    return {name: (min(m[name] for m in found), max(m[name] for m in found)) for name in found[0]}


def _provenance(trainer: Trainer, progress: _Progress) -> dict[str, Any]:
    return {
        "baselines": progress.baselines,
        "range": progress.seen,
        "iterations": trainer.iteration,
        "best_iteration": trainer.best_iteration,
        "best_validation": trainer.best_cost,
        "wall_s": round(progress.wall_s, 1),
        "versions": {
            "satguide": version("papercuts-satguide"),
            "clingo": version("clingo"),
            "torch": version("torch").partition("+")[0],
        },
    }


def _measured_by(meter: Meter) -> dict[str, Any]:
    """Say what of the measurement a result depends on: not how many processes did it."""
    names = ("backend", "cost", "polarity", "limit", "timeout_s")
    return {name: getattr(meter, name) for name in names}


def _check_start(run: Run, meter: Meter) -> None:
    """Raise for what no run can do, whatever is in the folder."""
    if "-" in (run.output, run.log):
        raise UsageError("training needs files for --output and --log: both are read again")
    if os.environ.get("WORLD_SIZE", "1") != "1":
        raise UsageError("training is one process (with --jobs workers), not for torchrun")
    hooks = backend(meter.backend).hooks
    if not hooks:
        raise UsageError(f"{meter.backend} takes no guidance, so there is nothing to learn")
    if "weights" not in hooks:
        if meter.polarity == "none":
            raise UsageError(f"{meter.backend} takes polarities only: not with --polarity none")
        logger.warning("%s takes polarities only, no weights", meter.backend)


def _check_places(run: Run) -> None:
    if run.plot is not None:
        from satguide.plot import check_plot

        check_plot(run.plot, force=run.force)
    if run.resume:
        if not run.part.exists():
            raise InputError(f"{run.part}: there is no unfinished run to resume")
        check_output(run.output, force=run.force)
        return
    check_output(run.output, force=run.force)
    if run.part.exists() and not run.force:
        raise OutputError(
            f"{run.part}: an earlier run was cut short"
            " (--resume goes on with it, --force starts again)"
        )
    check_output(run.log, force=run.force)


@contextlib.contextmanager
def _locked(place: Path, *, passing: bool = False) -> Iterator[None]:
    """Hold a lock on a file, which is made where it is missing and, if `passing`, goes again.

    Raises `OutputError` where another run has it.
    """
    with contextlib.ExitStack() as stack:
        while True:
            try:
                descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except OSError as error:
                raise OutputError(f"{place}: {reason(error)}") from error
            stack.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OutputError(f"{place}: another training run is writing here") from None
            except OSError:
                break  # a file system without locks
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), place.stat()):
                    break  # else the run that had it took it away just now
        if passing:
            stack.callback(place.unlink, missing_ok=True)  # before it is closed
        yield


@contextlib.contextmanager
def _log(run: Run, records: int) -> Iterator[BinaryIO]:
    """Open the log, behind the records that the resumed state already has."""
    place = Path(run.log)
    with _locked(place), create(place, run.log, live=True, keep=_kept(run, place, records)) as out:
        yield out


def _kept(run: Run, place: Path, records: int) -> int:
    """Count the bytes of the log that stay."""
    keep = 0
    if run.resume:
        lines = place.read_bytes().splitlines(keepends=True) if place.exists() else []
        if len(lines) < records:
            raise DataError(
                f"{run.log}: {len(lines)} records, but the run to resume wrote {records}"
            )
        keep = sum(map(len, lines[:records]))
    return keep


def _save(trainer: Trainer, progress: _Progress, run: Run, about: dict[str, Any]) -> None:
    tensors, numbers = trainer.state()
    state = {
        "shape": trainer.settings.shape.as_dict(),
        "sigma": trainer.settings.sigma,
        **about,
        "trainer": numbers,
        "progress": vars(progress),
        "range": progress.seen,
    }
    metadata = {"format": checkpoints.FORMAT, "satguide": json.dumps(state, sort_keys=True)}
    flat = {name: value.contiguous() for name, value in tensors.items()}
    with open_output(str(run.part), force=True) as out:
        out.write(save(flat, metadata=metadata))


def _restore(trainer: Trainer, progress: _Progress, run: Run, about: dict[str, Any]) -> None:
    tensors, state = checkpoints.read_tensors(str(run.part))
    for name, value in about.items():
        given, then = json.loads(json.dumps(value)), state.get(name)
        if name not in state:
            raise DataError(f"{run.part}: not the state of a training run (it has no {name})")
        if given != then:
            raise UsageError(
                f"{run.part} was begun with other settings: {_difference(then, given)}"
            )
    try:
        trainer.restore(tensors, state["trainer"])
        _restore_progress(progress, state["progress"])
    except (KeyError, RuntimeError, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{run.part}: not the state of a training run ({error})") from error


def _restore_progress(progress: _Progress, state: dict[str, Any]) -> None:
    """Take over what is of the right kind. Raises as `Trainer.restore` does."""
    progress.wall_s = float(state["wall_s"])
    if not 0 <= progress.wall_s < math.inf:
        raise ValueError(f"{progress.wall_s} is no time")
    progress.baselines = {k: float(state["baselines"][k]) for k in ("plain", "unit")}
    for name, (low, high) in dict(state["seen"]).items():
        if not (isinstance(low, int | float) and isinstance(high, int | float)):
            raise TypeError(f"its range of {name} is not of numbers")
        progress.seen[name] = (low, high)


def _difference(then: Any, given: Any) -> str:
    if isinstance(then, dict) and isinstance(given, dict):
        for name in given:
            if then.get(name) != given[name]:
                return f"{name} was {then.get(name)}, now {given[name]}"
    return f"it was {then}, now {given}"
