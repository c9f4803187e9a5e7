"""A run of `sample` or `uniform`, from its options to its file of draws."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from papercuts.errors import NegativeResult, UsageError
from papercuts.log import get_logger
from zoprox.bounds import Bounded, Box, read_bounds
from zoprox.correction import LOW, Corrected, corrected
from zoprox.potential import Points, Potential
from zoprox.reporting import Reporter
from zoprox.sampler import Round, sample_rounds
from zoprox.settings import Settings
from zoprox.startpoints import start_points
from zoprox.state import RunState, read_about
from zoprox.targets import Target, open_target

if TYPE_CHECKING:
    from zoprox.draws import Draws

AUTO = "auto"


@dataclass(frozen=True)
class Request:
    """What the user asked for: the target, the numbers of the method, and where draws go.

    `settings.step` stands for the step unless `auto`, where a pilot finds it.
    """

    target: Target
    settings: Settings
    auto: bool = False
    start: str | None = None
    bounds: str | None = None
    keep: int = 10
    correct: bool = True
    resume: bool = False
    output: str = "-"
    force: bool = False
    format_name: str | None = None
    plot: str | None = None


def make_settings(step: str, **numbers: Any) -> tuple[Settings, bool]:
    """Make settings of the options, and tell whether the step is still to be found.

    Raises `UsageError` for a number that cannot be.
    """
    auto = step == AUTO
    try:
        value = math.inf if auto else float(step)
    except ValueError:
        raise UsageError(f"--step {step}: a positive number, or auto") from None
    try:
        if auto:  # any finite step above beta_min, until the pilot finds one
            value = 1.0 + 2.0 * float(numbers.get("smallest", 0.0))
        return Settings(step=value, **numbers), auto
    except ValueError as error:
        raise UsageError(str(error)) from None


def run(request: Request) -> None:
    """Sample and write the draws.

    Raises what the target and the files raise; `NegativeResult`, when the draws are written, where
    the weights of the last rounds rest on too few points.
    """
    from papercuts.streams import check_output
    from zoprox.draws import draws_format, write_draws

    if request.plot:
        from zoprox.plot import check_plot

        check_plot(request.plot, force=request.force)
    check_output(request.output, force=request.force)
    by_default = "json" if request.output == "-" else None
    chosen = draws_format(request.output, request.format_name or by_default)
    if request.resume and request.output == "-":
        raise UsageError("--resume needs --output FILE: there is no file to go on with")
    request.target.checked()
    box = read_bounds(request.bounds, request.settings.dim) if request.bounds else None
    with contextlib.ExitStack() as stack:
        found = _Run(request, box).rounds(stack)
        draws = found.draws()
        write_draws(draws, request.output, format_name=chosen, force=request.force)
        if request.plot:
            from zoprox.plot import plot_draws

            plot_draws(draws, request.plot, force=request.force)
        found.complete()
    if found.reporter.collapsed:
        raise NegativeResult(found.reporter.collapsed)


class _Run:
    """One run: rounds, the correction of those that are kept, and what is said of them."""

    def __init__(self, request: Request, box: Box | None) -> None:
        self._request = request
        self._target = request.target
        self._box = box
        self._free = box is not None and not request.target.inside
        self._settings = request.settings
        self._state: RunState | None = None
        self._pilot = 0
        self._kept: list[Round] = []
        self._corrected: list[Corrected] = []
        self._asked = 0
        self.reporter = Reporter(request.settings)

    def rounds(self, stack: contextlib.ExitStack) -> _Run:
        """Run (or take up) the rounds and correct the last of them."""
        start = start_points(
            self._request.start, self._settings, self._box, inside=self._target.inside
        )
        raw = stack.enter_context(open_target(self._target, self._settings.dim, self._box))
        potential = self._seen_by_the_sampler(raw)
        self._settings = self._with_step(potential, start)
        self.reporter = Reporter(self._settings)
        self._state = self._open_state(stack)
        before = 0 if self._state is None else self._state.done
        keep_from = self._settings.rounds - self._request.keep + 1
        for round_ in self._all_rounds(potential, start):
            self._asked += round_.evaluations
            self.reporter.add(round_, earlier=round_.number <= before)
            if round_.number >= keep_from:
                self._kept.append(round_)
        if self._request.correct:
            self._correct(potential)
        return self

    def _seen_by_the_sampler(self, raw: Potential) -> Potential:
        return Bounded(raw, self._box) if self._free and self._box is not None else raw

    def _with_step(self, potential: Potential, start: Points) -> Settings:
        """Give the settings with the step: of the run that is resumed, or found by a pilot."""
        from zoprox.tuning import choose_step, pilot_evaluations

        if not self._request.auto:
            return self._settings
        self._pilot = pilot_evaluations(self._settings)
        if self._request.resume:
            about = read_about(self._request.output) or {}
            if isinstance(about.get("step"), float) and about.get("step_found") is True:
                return self._checked_step(about["step"])
        step = choose_step(potential, start, self._settings)
        get_logger(__name__).info(
            f"step {step:g}, found by a pilot of {self._pilot} evaluations (--step {step:g} "
            "takes it without)"
        )
        return self._checked_step(step)

    def _checked_step(self, step: float) -> Settings:
        try:
            return replace(self._settings, step=step)
        except ValueError as error:
            raise UsageError(str(error)) from None

    def _open_state(self, stack: contextlib.ExitStack) -> RunState | None:
        from papercuts.files import written_directly

        request = self._request
        if written_directly(request.output):
            return None
        settings = self._settings
        about = {
            **settings.as_dict(),
            "step_found": request.auto,
            "target": self._target.name,
            "inside": self._target.inside,
            "log_density": self._target.log_density,
            "start": request.start,
            "bounds": None if self._box is None else _bounds_of(self._box),
            "device": self._target.device,
            "dtype": self._target.dtype,
        }
        state = RunState(
            request.output,
            about,
            shape=(settings.particles, settings.dim),
            resume=request.resume,
            force=request.force,
        )
        stack.enter_context(state)  # first: one that is another run's is not this one's to remove
        stack.enter_context(_kept_on_failure(state))
        return state

    def _all_rounds(self, potential: Potential, start: Points) -> Iterator[Round]:
        """Yield the rounds of an earlier run that still count, then new ones."""
        state, settings = self._state, self._settings
        if state is None:
            yield from self._new_rounds(potential, start, 1)
            return
        points = start
        for number in range(1, min(state.done, settings.rounds) + 1):
            (round_,) = state.rounds(number, number)
            points = round_.points
            yield round_
        if state.done:
            get_logger(__name__).info(f"going on from round {state.done}")
        for round_ in self._new_rounds(potential, points, state.done + 1):
            state.write(round_)
            yield round_

    def _new_rounds(self, potential: Potential, points: Points, first: int) -> Iterator[Round]:
        if self._target.device is None:
            return sample_rounds(potential, self._settings, points, first=first)
        from zoprox.torch_path import sample_rounds_torch
        from zoprox.torch_target import TorchTarget

        function = TorchTarget(self._target, self._box)
        return sample_rounds_torch(
            function,
            self._settings,
            points,
            device=function.device,
            dtype=function.dtype,
            first=first,
        )

    def _correct(self, potential: Potential) -> None:
        settings = self._settings
        if settings.particles < 2:
            get_logger(__name__).warning("one particle alone cannot be corrected (-n 2 or more)")
            return
        for round_ in self._kept:
            self._corrected.append(
                corrected(
                    potential,
                    round_.points,
                    settings.step,
                    settings.draws,
                    settings.seed,
                    round_.number,
                )
            )
        moved, acceptance = self._rates()
        text = f"correction: {moved:.0%} of the particles moved, {acceptance:.0%} expected"
        if acceptance < LOW:
            get_logger(__name__).warning(
                f"{text}: too few to rely on it; more --mc, another --step or more rounds help"
            )
        else:
            get_logger(__name__).info(text)

    def _rates(self) -> tuple[float, float]:
        moved = float(np.mean([one.moved for one in self._corrected]))
        return moved, float(np.mean([one.acceptance for one in self._corrected]))

    def draws(self) -> Draws:
        """Give the draws in the user's coordinates, with all that they come from."""
        from zoprox.draws import Draws

        taken = self._corrected or self._kept
        points = np.stack([one.points for one in taken])
        if self._free and self._box is not None:
            rounds, count, dim = points.shape
            points = self._box.from_free(points.reshape(-1, dim)).reshape(rounds, count, dim)
        numbers = tuple(one.number for one in self._kept)
        return Draws(points, about=self._about(), numbers=numbers)

    def _about(self) -> dict[str, Any]:
        settings = self._settings
        corrections = sum(one.evaluations for one in self._corrected)
        about: dict[str, Any] = {
            "version": version("papercuts-zoprox"),
            "target": self._target.name,
            "log_density": self._target.log_density,
            "start": self._request.start,
            "bounds": None if self._box is None else _bounds_of(self._box),
            **settings.as_dict(),
            "step_found": self._request.auto,
            "evaluations": self._pilot + self._asked + corrections,
            "round_evaluations": self._asked,
            "correction_evaluations": corrections,
            "pilot_evaluations": self._pilot,
            "median_ess": self._kept[-1].median_ess,
            "min_ess": self._kept[-1].min_ess,
        }
        if self._corrected:
            moved, acceptance = self._rates()
            about |= {"moved": moved, "acceptance": acceptance}
            about |= self._normaliser()
        return about

    def _normaliser(self) -> dict[str, Any]:
        """Give the volume of the set, or the log of the integral of exp(-f), and say the first."""
        from zoprox.volume import estimate_volume

        found = estimate_volume(self._corrected, self._settings.draws)
        if not self._target.inside:
            return {
                "log_normaliser": found.log_volume,
                "log_normaliser_standard_error": found.relative_error,
            }
        log = get_logger(__name__)
        log.info(f"volume {found.volume:.6g}, standard error {found.standard_error:.2g}")
        about: dict[str, Any] = {
            "volume": found.volume,
            "volume_standard_error": found.standard_error,
        }
        whole = math.inf if self._box is None else self._box.volume
        if math.isfinite(whole):
            about["volume_fraction"] = found.volume / whole
            log.info(f"that is {found.volume / whole:.6g} of the box")
        if found.why:
            log.warning(f"the volume is not to be trusted: {found.why}")
        return about | {"volume_trusted": found.trusted}

    def complete(self) -> None:
        """Remove the state: the draws are written."""
        if self._state is not None:
            self._state.complete()


@contextlib.contextmanager
def _kept_on_failure(state: RunState) -> Iterator[None]:
    """Say what a run that was cut short has left, and leave nothing where no round was finished."""
    try:
        yield
    except BaseException:
        if state.done:
            get_logger(__name__).info(
                f"{state.done} finished rounds are in {state.path} (--resume goes on from them)"
            )
        else:
            state.complete()
        raise


def _bounds_of(box: Box) -> list[list[float | None]]:
    """Give the rows of a box, None where there is no bound."""
    rows = zip(box.low.tolist(), box.high.tolist(), strict=True)
    return [[value if math.isfinite(value) else None for value in row] for row in rows]
