"""Whether data contradict the assumption that no latent variable causes variables of two tiers.

Under the assumption an edge between v and a later variable c is v -> c, so that v is no collider
on a - v - c, whatever a is. Three variables tell, where a and v have an edge, v and c have one, and
a and c have none: some set S separates a from c, and

- it must hold v where v -> c: an S without v, with a and c dependent once v is added, is an
  arrowhead at v, from a latent cause of v and c (or from c itself): the assumption is contradicted;
- where it holds v, and a lies before v, nothing confounds v and c: a -> v <-> c would leave a and
  c inseparable given v (the edge is visible, Zhang 2008).

A latent cause beside a true edge v -> c leaves no such trace, and a pair without a third variable
of this kind none either: those stay undecided.

The p-value of a contradiction is the largest of those of its dependences: of the two edges, over
all sets tried, and of a and c, over all sets tried that hold v. It is small by chance only where
one of them is false, and Holm's method bounds the chance of any such error by `alpha`.

Sets are tried up to a size, and from a pool of near variables. A pair without an edge may then keep
one, and accuse a graph that keeps to its tiers, whatever the data. A triple counts only where the
sets tried must, under the assumption, hold one that separates each of its two pairs if they had no
edge (see `_truncated`); where its sets were cut short, the edge is undecided, and `capped`.

That is not the whole risk. The independence of a and c given S cannot be proved, only not be
rejected, and where a -> c and a - v -> c nearly cancel, it looks the same. Cancelling is delicate,
while a missing edge is not: a triple therefore counts only where a lies no later than v,
p(a, c | S) is over 0.1, and at least four in five single variables near a or c can be added to S
without making them dependent. What excludes a latent cause rests on an independence too, and must
pass the same screens, the dependence of a and c then being that over all sets tried without v.
The false alarms that remain on random graphs are measured in the README.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from papercuts.log import get_logger, progress
from papercuts.streams import default_input
from tierprune.bits import bits, mask_of
from tierprune.independence.base import Independence
from tierprune.summary import counted, describe_unused
from tierprune.tiers import Tiers

_AT_ONCE = 256  # tests of one call
_SURE = 0.1  # least p-value of an independence that contradicts
_STABLE = 0.8  # share of further variables that must leave it standing
_POOL = 12  # variables of which sets are made to refute a contradiction


@dataclass(frozen=True)
class Evidence:
    """Three variables that tell of a pair: `witness` has an edge with the earlier one only.

    `separated_by` makes the witness and the later variable independent (`p_separated`). For a
    contradiction, `p_joined` is the p-value of the two given the earlier one in addition, and `p`
    the largest p-value of all dependences.
    """

    witness: str
    separated_by: tuple[str, ...]
    p_separated: float
    p_joined: float | None
    p: float | None


@dataclass(frozen=True)
class Finding:
    """An edge between tiers: `early` and `late`.

    `verdict` is on "a latent cause confounds the two": `yes` contradicts the assumption, `no` is
    what `evidence` excludes, `undecided` what the data cannot tell. An undecided edge is `capped`
    where evidence was left aside because not all sets were tried that may refute it. `p_adjusted`
    is Holm's.
    """

    early: str
    late: str
    tier_early: int
    tier_late: int
    verdict: Literal["yes", "no", "undecided"]
    capped: bool
    p_adjusted: float | None
    evidence: Evidence | None

    def to_dict(self) -> dict[str, Any]:
        """Give the record."""
        e = self.evidence
        return {
            "early": self.early,
            "late": self.late,
            "tier_early": self.tier_early,
            "tier_late": self.tier_late,
            "verdict": self.verdict,
            "capped": self.capped,
            "p_adjusted": self.p_adjusted,
            "witness": None if e is None else e.witness,
            "separated_by": None if e is None else [*e.separated_by],
            "p_separated": None if e is None else e.p_separated,
            "p_joined": None if e is None else e.p_joined,
            "p": None if e is None else e.p,
        }


@dataclass(frozen=True)
class _Skeleton:
    """Edges as sets, the p-value of each (largest over the sets tried), and what separated."""

    adjacent: list[int]
    p_edge: dict[tuple[int, int], float]
    separated: dict[tuple[int, int], tuple[int, float]]
    layers: list[list[int]]  # what was adjacent after each size of sets, from 1
    tests: int


def check_assumption(
    test: Independence, tiers: Tiers, *, alpha: float = 0.05, max_cond: int = 4
) -> tuple[list[Finding], int]:
    """Look at every edge between tiers; gives the findings and the number of tests.

    `test` decides at its own level what is independent; `alpha` bounds the chance of any false
    contradiction. Sets of up to `max_cond` neighbours are tried. Contradictions come first, then
    by tiers. Raises `ValueError` for a variable without a tier.
    """
    tiers.check(test.names, "the data")
    tier = [tiers.of[name] for name in test.names]
    return _Check(test, tier, alpha, max_cond).run()


class _Check:
    """The search for triples that tell, and the screens that each must pass."""

    def __init__(self, test: Independence, tier: list[int], alpha: float, max_cond: int) -> None:
        self._test, self._tier, self._alpha, self._max_cond = test, tier, alpha, max_cond
        self._skeleton = _skeleton(test, tier, max_cond)
        self._tests = self._skeleton.tests
        self._known: dict[tuple[int, int, int, int], float] = {}

    def run(self) -> tuple[list[Finding], int]:
        names, tier = self._test.names, self._tier
        told: dict[tuple[int, int], Evidence] = {}
        capped: set[tuple[int, int]] = set()
        suspects: list[tuple[float, int, int, Evidence]] = []
        family = 0
        for a, v, c in _triples(self._skeleton.adjacent, tier):
            family += 1
            given, p_separated = self._skeleton.separated[min(a, c), max(a, c)]
            holds = bool(given >> v & 1)
            if holds and ((v, c) in told or tier[a] >= tier[v]):
                continue
            p, p_joined = self._dependences(a, v, c, without=holds)
            screened = p <= self._alpha and tier[a] <= tier[v] and p_separated >= _SURE
            if p <= self._alpha and not (screened and self._stable((a, c, given), v)):
                continue
            if p <= self._alpha and (self._truncated(a, v) or self._truncated(v, c)):
                capped.add((v, c))
                continue
            apart = tuple(names[i] for i in bits(given))
            if not holds:
                evidence = Evidence(names[a], apart, p_separated, p_joined, p)
                suspects.append((p, v, c, evidence))
            elif p <= self._alpha:
                told[v, c] = Evidence(names[a], apart, p_separated, None, None)
        adjusted = _holm(suspects, family)
        findings = []
        for v, c in _cross_edges(self._skeleton.adjacent, tier):
            holm, found = adjusted.get((v, c), (None, None))
            verdict: Literal["yes", "no", "undecided"] = "undecided"
            if holm is not None and holm <= self._alpha:
                verdict = "yes"
            elif (v, c) in told:
                verdict, found = "no", told[v, c]
            left = verdict == "undecided" and (v, c) in capped
            findings.append(
                Finding(names[v], names[c], tier[v], tier[c], verdict, left, holm, found)
            )
        findings.sort(key=lambda f: (f.verdict != "yes", f.p_adjusted if f.verdict == "yes" else 0))
        return findings, self._tests

    def _dependences(self, a: int, v: int, c: int, *, without: bool) -> tuple[float, float]:
        """Give the largest p-value of the dependences of a triple, and that of a and c alone.

        These are the two edges, and a and c over the sets that hold v, or that lack it (`without`).
        Beyond the first that is not significant, nothing is tested: it counts as 1.
        """
        p_edge = self._skeleton.p_edge
        p = max(p_edge[min(a, v), max(a, v)], p_edge[min(v, c), max(v, c)])
        p_joined = 1.0
        must, never = (0, 1 << v) if without else (1 << v, 0)
        for key in ((a, c, must, never), (v, c, 0, 0), (a, v, 0, 0)):
            if p <= self._alpha and key not in self._known:
                self._known[key] = self._largest(*key)
            each = self._known.get(key, 1.0)
            p = max(p, each)
            if key[:2] == (a, c):
                p_joined = each
        return p, p_joined

    def _near(self, x: int, y: int) -> list[int]:
        """List the variables of which sets are made for a pair.

        More than the search's: what was adjacent to either once single variables had been tried,
        those that stayed adjacent longest first.
        """
        last = max(self._tier[x], self._tier[y])
        near: dict[int, None] = {}
        for layer in reversed(self._skeleton.layers):
            near.update(dict.fromkeys(bits(layer[x] | layer[y])))
        return [k for k in near if k not in (x, y) and self._tier[k] <= last]

    def _truncated(self, x: int, y: int) -> bool:
        """Say whether sets were left out of which one may separate a pair that has no edge.

        Under the assumption D-SEP(y, x) separates such a pair (Spirtes et al. 2000, chapter 6.7).
        Where y lies later, it is the parents of y in the MAG: a collider d on its paths would be an
        ancestor of y with y <-> d. Otherwise it is a part of Possible-D-SEP of either variable.
        """
        if self._tier[x] != self._tier[y]:
            early, late = (x, y) if self._tier[x] < self._tier[y] else (y, x)
            around = self._skeleton.adjacent[late] & self._until(late) & ~(1 << early)
            return around.bit_count() > self._max_cond
        pool = mask_of(self._near(x, y)[:_POOL])
        for z, other in ((x, y), (y, x)):
            wide = self._possible_d_sep(z) & ~(1 << other)
            if wide.bit_count() <= self._max_cond and not wide & ~pool:
                return False
        return True

    def _until(self, z: int) -> int:
        """Give the variables that do not lie after z."""
        return mask_of(k for k, tier in enumerate(self._tier) if tier <= self._tier[z])

    def _possible_d_sep(self, z: int) -> int:
        """Give Possible-D-SEP of z: its paths have inner variables of the tier of z alone."""
        adjacent, separated = self._skeleton.adjacent, self._skeleton.separated
        until = self._until(z)
        reached = adjacent[z] & until
        states = [(z, d) for d in bits(reached)]
        seen = set(states)
        while states:
            before, d = states.pop()
            if self._tier[d] != self._tier[z]:
                continue
            for u in bits(adjacent[d] & until & ~(1 << before | 1 << z)):
                shut = separated.get((min(before, u), max(before, u)))
                if (shut is None or not shut[0] >> d & 1) and (d, u) not in seen:
                    seen.add((d, u))
                    states.append((d, u))
                    reached |= 1 << u
        return reached & ~(1 << z)

    def _largest(self, x: int, y: int, must: int, never: int) -> float:
        """Give the largest p-value of two variables over sets that hold `must`, and no `never`.

        Ends at the first p-value above `alpha`.
        """
        pool = [k for k in self._near(x, y) if not (must | never) >> k & 1][:_POOL]
        fixed = tuple(bits(must))
        largest = 0.0
        for size in range(min(self._max_cond, len(pool)) + 1):
            sets = [fixed + chosen for chosen in itertools.combinations(pool, size)]
            for start in range(0, len(sets), _AT_ONCE):
                part = sets[start : start + _AT_ONCE]
                largest = max(largest, float(self._test.p_values_of(x, y, part).max()))
                self._tests += len(part)
                if largest > self._alpha:
                    return largest
        return largest

    def _stable(self, apart: tuple[int, int, int], v: int) -> bool:
        """Say whether an independence stands when single near variables are added to its set."""
        a, c, given = apart
        last = max(self._tier[a], self._tier[c])
        skeleton = self._skeleton
        layer = skeleton.layers[0] if skeleton.layers else skeleton.adjacent
        near = (layer[a] | layer[c]) & ~(given | 1 << a | 1 << c | 1 << v)
        sets = [(*bits(given), w) for w in bits(near) if self._tier[w] <= last]
        if not sets:
            return True
        self._tests += len(sets)
        return float(np.mean(self._test.p_values_of(a, c, sets) > self._test.alpha)) >= _STABLE


def _holm(
    suspects: list[tuple[float, int, int, Evidence]], family: int
) -> dict[tuple[int, int], tuple[float | None, Evidence | None]]:
    """Give each suspected edge its least adjusted p-value, and the evidence that has it."""
    adjusted: dict[tuple[int, int], tuple[float | None, Evidence | None]] = {}
    largest = 0.0
    for rank, (p, v, c, evidence) in enumerate(sorted(suspects, key=lambda each: each[0])):
        largest = max(largest, min(1.0, p * (family - rank)))
        adjusted.setdefault((v, c), (largest, evidence))
    return adjusted


def check_file(
    data: str | None,
    tiers: Tiers,
    *,
    test: Literal["fisherz", "gsq", "chisq"],
    alpha: float,
    level: float,
    max_cond: int,
    missing: Literal["error", "drop"],
) -> tuple[list[Finding], int]:
    """Read the columns that have a tier and check them; raises as `read_table` does.

    The log names the columns that have none. `UsageError` for levels that are not in (0, 1).
    """
    from tierprune.dataset import read_table
    from tierprune.independence import make_test
    from tierprune.independence.level import MISSED, check_level

    check_level("--alpha", alpha, "a false contradiction may be more likely than not")
    check_level("--level", level, MISSED)
    table = read_table(default_input(data, "data"), missing=missing, columns=tiers.names)
    made = make_test(test, table, tiers.names, alpha=level)
    for line in describe_unused(table.header, tiers):
        get_logger(__name__).warning(line)
    return check_assumption(made, tiers, alpha=alpha, max_cond=max_cond)


def describe(findings: list[Finding], tests: int) -> str:
    """Sum up the findings in one line."""
    count = {kind: sum(f.verdict == kind for f in findings) for kind in ("yes", "no", "undecided")}
    capped = sum(f.capped for f in findings)
    short = f", {capped} of these as their sets were cut short" if capped else ""
    return (
        f"{counted(len(findings), 'edge')} between tiers: "
        f"{count['yes']} contradict the assumption, in "
        f"{count['no']} a latent cause is excluded, {count['undecided']} cannot be told{short} "
        f"({tests} tests)"
    )


def _triples(adjacent: list[int], tier: list[int]) -> Iterator[tuple[int, int, int]]:
    """Yield a, v, c: v before c, edges a - v and v - c, none between a and c."""
    for v, c in _cross_edges(adjacent, tier):
        for a in bits(adjacent[v] & ~(adjacent[c] | 1 << c)):
            yield a, v, c


def _cross_edges(adjacent: list[int], tier: list[int]) -> list[tuple[int, int]]:
    """List the edges between tiers, the earlier end first."""
    found = [(i, j) for i, mask in enumerate(adjacent) for j in bits(mask) if tier[i] < tier[j]]
    return sorted(found, key=lambda e: (tier[e[1]], tier[e[0]], e))


def _skeleton(test: Independence, tier: list[int], max_cond: int) -> _Skeleton:
    """Search as `discover` does: sets of neighbours that do not lie after the pair, by size."""
    size = len(tier)
    adjacent = [((1 << size) - 1) & ~(1 << i) for i in range(size)]
    p_edge = dict.fromkeys(itertools.combinations(range(size), 2), 0.0)
    separated: dict[tuple[int, int], tuple[int, float]] = {}
    layers: list[list[int]] = []
    tests = 0
    for level in range(max_cond + 1):
        before = adjacent[:]
        with progress(f"sets of {level}", len(p_edge)) as bar:
            for i, j in list(p_edge):
                last = max(tier[i], tier[j])
                allowed = mask_of(k for k in range(size) if tier[k] <= last) & ~(1 << i | 1 << j)
                sets: dict[tuple[int, ...], None] = {}
                for end in (i, j):
                    if tier[end] == last:
                        around = list(bits(before[end] & allowed))
                        sets.update(dict.fromkeys(itertools.combinations(around, level)))
                listed = list(sets)
                for start in range(0, len(listed), _AT_ONCE):
                    part = listed[start : start + _AT_ONCE]
                    p_values = test.p_values_of(i, j, part)
                    tests += len(part)
                    best = int(np.argmax(p_values))
                    p = float(p_values[best])
                    p_edge[i, j] = max(p_edge[i, j], p)
                    if p > test.alpha:
                        separated[i, j] = mask_of(part[best]), p
                        adjacent[i] &= ~(1 << j)
                        adjacent[j] &= ~(1 << i)
                        del p_edge[i, j]
                        break
                bar.advance()
        if level:
            layers.append(adjacent[:])
    return _Skeleton(adjacent, p_edge, separated, layers, tests)
