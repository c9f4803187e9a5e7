"""The paper's claim on one page: guidance learnt from decision counts saves decisions."""

from __future__ import annotations

from collections.abc import Iterator

from papercuts.log import progress
from papercuts.parallel import seed_for
from satguide.cnf import CNF
from satguide.evaluation import Contest, evaluate
from satguide.evaluation_table import Table
from satguide.families.spec import generator
from satguide.models import load

# family, size, formulas, what the size is; the last size of a family was never trained on
ROWS = (
    ("3sat", 100, 100, "variables"),
    ("3sat", 150, 60, "variables"),
    ("3col", 150, 60, "vertices"),
    ("3col", 200, 60, "vertices"),
    ("hitag2", 26, 30, "bits known"),
    ("hitag2", 25, 30, "bits known"),
)
_SEED = 7004  # formulas of its own: neither of training nor of validation


def demo_lines(jobs: int | None = None) -> Iterator[str]:
    """Yield the demo's text line by line; everything is solved on the way."""
    yield "Mean decisions of clasp on formulas that no training has seen:"
    yield ""
    yield (
        f"{'formulas':<26}{'number':>6}{'VSIDS':>10}{'w=1, p=1':>10}{'guided':>10}"
        f"{'change':>9}{'paired t':>10}"
    )
    tables = []
    for family, size, count, unit in ROWS:
        table = _compare(family, size, count, jobs)
        tables.append(table)
        yield _line(f"{family}, {size} {unit}", table)
    yield ""
    yield "Change and t are against the better of the two baselines."
    yield from _verdicts(tables)


def _compare(family: str, size: int, count: int, jobs: int | None) -> Table:
    contest = Contest(polarity=load(family).polarity, jobs=jobs)
    table = Table(contest)
    with progress(f"{family} {size}", count) as bar:
        for result in evaluate(load(family), _formulas(family, size, count), contest):
            table.add(result)
            bar.advance()
    return table


def _formulas(family: str, size: int, count: int) -> Iterator[CNF]:
    make = generator(family)
    return (make(size, seed_for(_SEED, index)) for index in range(count))


def _line(name: str, table: Table) -> str:
    better = table.better()
    means = [table.column(arm, "decisions").mean() for arm in ("plain", "unit", "guided")]
    shown = "".join(f"{mean:>10.1f}" for mean in means)
    found = table.comparison(better or "plain")
    change = "" if found.change_percent is None else f"{found.change_percent:+.1f} %"
    return f"{name:<26}{len(table):>6}{shown}{change:>9}{found.t or 0.0:>10.1f}"


def _verdicts(tables: list[Table]) -> Iterator[str]:
    solved = sum(len(table) for table in tables)
    differ = sum(len(table.disagreements) for table in tables)
    looks = [time for table in tables for time in table.network_s]
    yield (
        f"{solved + differ} formulas, each solved three times: {differ} contradictions, "
        "every model checked against the clauses."
    )
    yield f"The network looks at a formula for {1000 * sum(looks) / len(looks):.1f} ms."
