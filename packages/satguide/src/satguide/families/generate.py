"""What `satguide gen` draws: numbered formulas of a family, each from a seed of its own."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

from papercuts.errors import NegativeResult, OutputError, UsageError
from papercuts.files import check_output, open_output, reason
from papercuts.log import get_logger, progress
from papercuts.parallel import ordered_map, seed_for
from satguide import dimacs
from satguide.cnf import CNF
from satguide.families import cnfgen, hitag2
from satguide.families.spec import check_sizes, generator
from satguide.versus import solve

COMPRESSIONS = ("gz", "xz", "zst")
PATIENCE = 1000  # candidates of one size in a row without one that is still wanted
_ONE_FILE = re.compile(r"\.(cnf|dimacs)(\.(gz|xz|zst))?$")


@dataclass(frozen=True)
class Plan:
    """Which formulas to draw: number i has size `sizes[i % len(sizes)]` and seed (seed, i).

    `balance` is for `balanced`: Hitag2 then plants a state in every other formula of a size.
    """

    family: str
    sizes: tuple[int, ...]
    seed: int = 0
    planted: bool = False
    balance: bool = False

    def __post_init__(self) -> None:
        if self.sizes == () and not self.family.startswith(cnfgen.PREFIX):
            generator(self.family)  # an unknown family is the first thing to say
            raise UsageError(f"{self.family}: name at least one --size")
        if self.sizes or cnfgen.sized(self.family):
            check_sizes(self.family, self.sizes)
            if not self.sizes:
                raise UsageError(f"{self.family}: name at least one --size, for its {{size}}")
        if self.planted and self.family != "hitag2":
            raise UsageError(f"--planted is for hitag2, not for {self.family}")
        if self.planted and self.balance:
            raise UsageError("--planted gives satisfiable formulas only: leave out --balance")

    def size(self, index: int) -> int:
        """Give the size of formula `index`, 0 for a family without one."""
        return self.sizes[index % len(self.sizes)] if self.sizes else 0

    def label(self) -> str:
        """Give the family's name as files have it."""
        if self.family.startswith(cnfgen.PREFIX):
            return cnfgen.label(self.family)
        return self.family

    def names(self, count: int) -> dict[int, list[str]]:
        """Give the file names of `count` formulas, numbered within each size."""
        per_size = Counter(self.size(index) for index in range(count))
        digits = max(4, len(str(max(per_size.values(), default=0) - 1)))
        return {
            size: [
                f"{self.label()}-{f'{size}-' if self.sizes else ''}{number:0{digits}}.cnf"
                for number in range(many)
            ]
            for size, many in per_size.items()
        }


def formula(index: int, plan: Plan) -> CNF:
    """Draw formula `index` of a plan. Its comments say how to draw it again."""
    size, seed = plan.size(index), seed_for(plan.seed, index)
    extra: list[str] = []
    if plan.family == "hitag2":
        alternate = plan.balance and index // len(plan.sizes) % 2 == 0
        made = hitag2.instance(size, seed, planted=plan.planted or alternate)
        cnf = made.cnf
        if made.planted:
            state = sum(int(bit) << place for place, bit in enumerate(made.state))
            extra = [f"planted state: 0x{state:012x} (bit i is variable i + 1)"]
    else:
        cnf = generator(plan.family)(size, seed)
    about = [
        f"family: {plan.family}",
        *([f"size: {size}"] if plan.sizes else []),
        f"seed: {plan.seed}",
        f"index: {index}",
        *extra,
        f"drawn by satguide {version('papercuts-satguide')}",
    ]
    return replace(cnf, comments=tuple(about))


def formulas(plan: Plan, count: int, *, jobs: int | None = 1) -> Iterator[tuple[int, CNF]]:
    """Yield the sizes and formulas 0 to `count - 1` of a plan."""
    made = ordered_map(partial(formula, plan=plan), range(count), jobs=jobs)
    for index, cnf in enumerate(made):
        yield plan.size(index), cnf


def balanced(plan: Plan, count: int, *, jobs: int | None = None) -> Iterator[tuple[int, CNF]]:
    """Yield the first formulas of a plan that make satisfiable and unsatisfiable ones equally many.

    Of every size there are `count / len(sizes)`, half of them satisfiable; each is solved, and left
    out where its half is full. The same formulas come out for any `jobs`. Raises `UsageError` for a
    count that cannot be halved, and `NegativeResult` where `PATIENCE` formulas of a size in a row
    are all of the kind that is not wanted any more.
    """
    groups = max(1, len(plan.sizes))
    share, rest = divmod(count, 2 * groups)
    if rest:
        times = f" times {groups} sizes" if groups > 1 else ""
        raise UsageError(f"--balance needs a --count that is a multiple of 2{times}, not {count}")
    wanted = {(plan.size(i), kind): share for i in range(groups) for kind in (True, False)}
    in_vain = Counter[int]()

    def candidates() -> Iterator[int]:
        for index in itertools.count():
            size = plan.size(index)
            if wanted[size, True] or wanted[size, False]:
                yield index
            elif not any(wanted.values()):
                return

    found = ordered_map(partial(_judged, plan=plan), candidates(), jobs=jobs)
    with closing(found):  # type: ignore[type-var]  # a generator, which ends its workers
        for size, cnf, satisfiable in found:
            if not any(wanted.values()):
                return
            if wanted[size, satisfiable]:
                wanted[size, satisfiable] -= 1
                in_vain[size] = 0
                word = f"satisfiable: {'yes' if satisfiable else 'no'}"
                yield size, replace(cnf, comments=(*cnf.comments, word))
                continue
            in_vain[size] += 1
            if in_vain[size] == PATIENCE and wanted[size, not satisfiable]:
                kind = "unsatisfiable" if satisfiable else "satisfiable"
                raise NegativeResult(
                    f"{plan.family}: none of {PATIENCE} formulas of size {size} in a row is {kind}"
                )


def _judged(index: int, plan: Plan) -> tuple[int, CNF, bool]:
    cnf = formula(index, plan)
    return plan.size(index), cnf, bool(solve("cadical195", cnf).satisfiable)


def write(
    made: Iterator[tuple[int, CNF]],
    plan: Plan,
    count: int,
    output: str,
    *,
    compress: str | None = None,
    force: bool = False,
) -> None:
    """Write formulas one after the other to stdout (`-`) or into a `.cnf` file, or into a folder.

    In a folder, made where it is missing, each has a file, whole or not at all. Raises
    `OutputError` before anything is drawn where one of these exists and `force` is not given.
    """
    if compress is not None and compress not in COMPRESSIONS:
        raise UsageError(f"--compress {compress}: expected {', '.join(COMPRESSIONS)}")
    single = output == "-" or _ONE_FILE.search(output) is not None
    if single and compress is not None:
        raise UsageError("--compress is for a folder: a file is compressed by its suffix")
    if single:
        with open_output(output, force=force) as out, progress("formulas", count) as bar:
            for _, cnf in made:
                dimacs.write(out, cnf)
                bar.advance()
        return
    folder = Path(output)
    names = plan.names(count)
    suffix = f".{compress}" if compress else ""
    _prepare(folder, [f"{name}{suffix}" for own in names.values() for name in own], force=force)
    left = {size: iter(own) for size, own in names.items()}
    with progress("formulas", count) as bar:
        for size, cnf in made:
            with open_output(folder / f"{next(left[size])}{suffix}", force=force) as out:
                dimacs.write(out, cnf)
            bar.advance()
    get_logger(__name__).info("%d formulas in %s", count, folder)


def _prepare(folder: Path, names: Sequence[str], *, force: bool) -> None:
    """Make the folder, or see that nothing in it is in the way."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: {reason(error)}") from error
    if not force:
        for name in names:
            check_output(folder / name)


def sizes_of(text: str | None) -> tuple[int, ...]:
    """Read `N[,N...]`. Raises `UsageError` for anything else."""
    try:
        return () if text is None else tuple(int(size) for size in text.split(","))
    except ValueError:
        raise UsageError(f"--size {text}: expected N or N,N,...") from None


def draw(plan: Plan, count: int, *, jobs: int | None = None) -> Iterator[tuple[int, CNF]]:
    """Yield the formulas of a plan, balanced where it says so."""
    if plan.balance:
        return balanced(plan, count, jobs=jobs)
    return formulas(plan, count, jobs=jobs or 1)
