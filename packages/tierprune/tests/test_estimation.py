"""Estimates from data: by hand, by closed forms, by coverage, and what is refused."""

import numpy as np
import pytest
from causalmodel import Model

from papercuts.errors import DataError, UsageError
from tierprune.admg import ADMG
from tierprune.answering import describe_records
from tierprune.dataset import Coded
from tierprune.estimation import Counts, Difference, Estimate, estimate, read_assignments
from tierprune.expression import Estimand
from tierprune.identification import identify, identify_pruned
from tierprune.pruning import prune
from tierprune.query import Query
from tierprune.tiers import Tiers


def formula(names: str, arrows: str, arcs: str = "", given: str = "") -> Estimand:
    graph = ADMG.from_edges(
        names.split(), [(*pair,) for pair in arrows.split()], [(*pair,) for pair in arcs.split()]
    )
    found = identify(graph, Query(("X",), ("Y",), tuple(given))).estimand
    assert found is not None
    return found


BACK_DOOR = formula("W X Y", "WX WY XY")
FRONT_DOOR = formula("X M Y", "XM MY", "XY")


def table(**columns: object) -> Counts:
    coded = []
    for name, values in columns.items():
        array = np.asarray(values, dtype=np.int64)
        coded.append(Coded(name, array, tuple(map(str, range(int(array.max()) + 1)))))
    return Counts(coded, source="d.csv")


def confounded(rng: np.random.Generator, rows: int) -> Counts:
    w = rng.integers(0, 3, rows)
    x = (rng.random(rows) < 0.3 + 0.2 * w).astype(int)
    y = (rng.random(rows) < 0.2 + 0.15 * w + 0.2 * x).astype(int)
    return table(W=w, X=x, Y=y)


def one(counts: Counts, estimand: Estimand = BACK_DOOR, **options: object) -> Estimate:
    settings = {"do": {"X": "1"}, "outcome": {"Y": "1"}, "bootstrap": 0, **options}
    (found,) = estimate(estimand, counts, **settings)  # type: ignore[arg-type]
    assert isinstance(found, Estimate)
    return found


def test_adjustment_equals_the_weighted_mean_over_strata() -> None:
    counts = confounded(np.random.default_rng(1), 4000)
    w, x, y = (counts.codes[name] for name in "WXY")
    n = counts.counts
    by_hand, thinnest = 0.0, np.inf
    for stratum in range(3):
        treated = n[(w == stratum) & (x == 1)].sum()
        ill = n[(w == stratum) & (x == 1) & (y == 1)].sum()
        by_hand += n[w == stratum].sum() / n.sum() * ill / treated
        thinnest = min(thinnest, treated)
    found = one(counts)
    assert found.estimate == pytest.approx(by_hand, rel=1e-12)
    assert found.thinnest is not None
    assert found.thinnest.rows == thinnest
    assert found.thinnest.values["X"] == "1"


def test_all_values_of_an_outcome_add_up_to_one() -> None:
    counts = confounded(np.random.default_rng(2), 500)
    found = estimate(BACK_DOOR, counts, do={"X": "0"}, outcome={"Y": None}, bootstrap=0)
    assert [result.to_dict()["outcome"] for result in found] == [{"Y": "0"}, {"Y": "1"}]
    assert sum(result.estimate for result in found) == pytest.approx(1.0, abs=1e-12)


def test_a_difference_is_that_of_the_two_and_pairs_the_resamples() -> None:
    counts = confounded(np.random.default_rng(3), 2000)
    options = {"outcome": {"Y": "1"}, "bootstrap": 100, "seed": 4}
    (found,) = estimate(BACK_DOOR, counts, do={"X": "1"}, versus={"X": "0"}, **options)  # type: ignore[arg-type]
    (first,) = estimate(BACK_DOOR, counts, do={"X": "1"}, **options)  # type: ignore[arg-type]
    (second,) = estimate(BACK_DOOR, counts, do={"X": "0"}, **options)  # type: ignore[arg-type]
    assert isinstance(found, Difference)
    assert isinstance(first, Estimate)
    assert isinstance(second, Estimate)
    assert found.estimate == first.estimate - second.estimate
    drawn = first.resamples - second.resamples
    assert (found.low, found.high) == pytest.approx(np.percentile(drawn, [2.5, 97.5]))


def test_the_interval_of_a_share_is_that_of_the_binomial() -> None:
    rows = 1000
    y = np.arange(rows) < 300
    counts = table(X=np.arange(rows) % 2, Y=y)
    found = one(counts, formula("X Y", "YX"), bootstrap=4000)
    deviation = np.sqrt(0.3 * 0.7 / rows)
    assert found.estimate == pytest.approx(0.3)
    assert found.standard_error == pytest.approx(deviation, rel=0.05)
    assert found.low == pytest.approx(0.3 - 1.96 * deviation, abs=0.003)
    assert found.high == pytest.approx(0.3 + 1.96 * deviation, abs=0.003)


def test_resamples_follow_the_seed_and_not_the_size_of_their_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts = confounded(np.random.default_rng(5), 300)
    together = one(counts, bootstrap=50, seed=1)
    monkeypatch.setattr("tierprune.estimation._CELLS_AT_ONCE", 100)
    apart = one(counts, bootstrap=50, seed=1)
    np.testing.assert_allclose(together.resamples, apart.resamples, rtol=1e-12)
    assert one(counts, bootstrap=50, seed=2).low != together.low


def test_an_empty_cell_is_named() -> None:
    w, x, y = np.indices((3, 2, 2)).reshape(3, -1)
    keep = ~((w == 2) & (x == 1))
    counts = table(W=w[keep], X=x[keep], Y=y[keep])
    with pytest.raises(DataError, match=r"d\.csv: .*W=2, X=1, which has 0 rows") as caught:
        one(counts)
    assert caught.value.exit_code == 65
    assert one(counts, do={"X": "0"}).estimate == pytest.approx(0.5)


def test_an_empty_cell_is_no_matter_where_it_is_multiplied_by_nothing() -> None:
    # M=2 never follows X=1, so that no row with X=1, M=2 is missed, though X=0, M=2 occurs.
    x = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1])
    m = np.array([0, 0, 1, 1, 2, 2, 0, 0, 1, 1])
    y = np.array([0, 1, 0, 0, 1, 1, 0, 1, 1, 1])
    found = one(table(X=x, M=m, Y=y), FRONT_DOOR)
    # M is 0 or 1 in equal shares under X=1; P(x') is 0.6 and 0.4.
    by_hand = 0.5 * (0.6 * 0.5 + 0.4 * 0.5) + 0.5 * (0.6 * 0.0 + 0.4 * 1.0)
    assert found.estimate == pytest.approx(by_hand, rel=1e-12)
    with pytest.raises(DataError, match="X=1, M=2"):
        one(table(X=x, M=m, Y=y), FRONT_DOOR, do={"X": "0"})


def test_a_condition_that_never_occurs_is_named() -> None:
    w, x, y = np.indices((2, 2, 2)).reshape(3, -1)
    counts = Counts([Coded("Z", w, ("0", "1", "2")), *table(X=x, Y=y).columns.values()])
    with pytest.raises(DataError, match="Z=2"):
        one(counts, formula("Z X Y", "ZX ZY XY", given="Z"), given={"Z": "2"})


def test_smoothing_adds_to_every_cell() -> None:
    x = np.array([0, 0, 0, 0, 1, 1])
    y = np.array([0, 0, 0, 1, 1, 1])
    found = one(table(X=x, Y=y), formula("X Y", "XY"), smooth=1.0)
    assert found.estimate == pytest.approx((2 + 1) / (2 + 2))


@pytest.mark.parametrize("treated", [1, 2, 3])
def test_resamples_without_the_cell_are_counted_and_left_out(treated: int) -> None:
    # A resample of 100 rows has none of the k treated with probability (1 - k / 100)^100.
    x = np.array([1] * treated + [0] * (100 - treated))
    y = np.array([1] * 50 + [0] * 50)
    counts, missed = table(X=x, Y=y), (1 - treated / 100) ** 100
    found = one(counts, formula("X Y", "XY"), bootstrap=2000)
    assert found.undefined / 2000 == pytest.approx(missed, abs=0.04)
    if missed > 0.1:  # 37 % and 13 %: what is left is no sample of the whole
        assert np.isnan([found.low, found.high]).all()
    else:  # 5 %
        assert (found.low, found.high) == (1.0, 1.0)


def test_a_difference_without_one_side_has_no_interval() -> None:
    x = np.array([1] + [0] * 99)
    counts = table(X=x, Y=np.arange(100) % 2)
    (found,) = estimate(
        formula("X Y", "XY"), counts, do={"X": "0"}, versus={"X": "1"}, outcome={"Y": "1"}
    )
    assert isinstance(found, Difference)
    assert np.isfinite([found.first.low, found.first.high]).all()
    assert np.isnan([found.second.low, found.low, found.high]).all()
    said = list(describe_records([{**found.to_dict(), "bootstrap": 200, "rows": 100}]))
    assert said[-2].endswith("of 200 resamples left out: an empty cell")
    assert said[-1] == "no interval where more than 10% are left out"


@pytest.mark.parametrize("smooth", [np.inf, np.nan, -1.0])
def test_smoothing_by_no_number_is_refused(smooth: float) -> None:
    with pytest.raises(UsageError, match="--smooth"):
        one(confounded(np.random.default_rng(1), 50), smooth=smooth)


def test_the_cell_below_the_line_of_a_quotient_counts() -> None:
    # The napkin: P(y | do(x)) = sum_w P(x, y | r, w) P(w) / sum_w P(x | r, w) P(w), for any r.
    napkin = formula("W R X Y", "WR RX XY", "WX WY")
    w, r, x, y = np.indices((2, 2, 2, 2)).reshape(4, -1)
    often = np.where(x == 1, 2, 50)
    counts = table(**{n: np.repeat(v, often) for n, v in zip("WRXY", (w, r, x, y), strict=True)})
    rare, common = (one(counts, napkin, do={"X": value}).thinnest for value in "10")
    assert rare is not None
    assert common is not None
    assert (rare.values["X"], set(rare.values), rare.rows) == ("1", {"R", "X"}, 8)
    assert (set(common.values), common.rows) == ({"W", "R"}, 104)


def test_what_the_formula_does_not_depend_on_is_held_at_its_commonest_value() -> None:
    graph = ADMG.from_edges("WRXY", ["WR", "RX", "XY"], ["WX", "WY"])
    query = Query(("X",), ("Y",))
    estimand = identify(graph, query).estimand
    assert estimand is not None
    model = Model.draw(graph, 1, levels=(2,))
    joint = model.joint()
    cells = np.indices(joint.shape).reshape(4, -1)
    columns = [Coded(name, cells[i], ("0", "1")) for i, name in enumerate(graph.names)]
    found = one(Counts(columns, joint.ravel()), estimand)
    given_x = joint.sum(axis=(0, 3))[:, 1]  # of R beside X=1
    assert found.at == {"R": str(int(np.argmax(given_x)))}
    assert found.estimate == pytest.approx(model.effect(query, {"X": 1, "Y": 1}), abs=1e-12)


@pytest.mark.slow
def test_many_variables_cost_what_their_rows_cost() -> None:
    rng = np.random.default_rng(6)
    covariates = [f"W{i}" for i in range(70)]
    patterns = rng.integers(0, 2, (12, 70))
    patterns[:2] = [[0] * 70, [1] * 70]
    which = rng.integers(0, 12, 3000)
    x = (rng.random(3000) < 0.3 + 0.03 * which).astype(int)
    y = (rng.random(3000) < 0.1 + 0.05 * which).astype(int)
    columns = {name: patterns[which, i] for i, name in enumerate(covariates)}
    graph = ADMG.from_edges(
        [*covariates, "X", "Y"],
        [*((name, end) for name in covariates for end in "XY"), ("X", "Y")],
    )
    query, tiers = Query(("X",), ("Y",)), Tiers((tuple(covariates), ("X",), ("Y",)))
    estimand = identify_pruned(prune(graph, tiers, query), tiers.of, query).estimand
    assert estimand is not None
    counts = table(**columns, X=x, Y=y)
    # 2^70 combinations are 12 that occur: they act as one variable of 12 values.
    merged = one(table(W=which, X=x, Y=y), bootstrap=20)
    found = one(counts, estimand, bootstrap=20)
    assert found.estimate == pytest.approx(merged.estimate, rel=1e-12)
    assert found.standard_error == pytest.approx(merged.standard_error, rel=0.6)
    with pytest.raises(DataError, match="too many"):
        one(counts, estimand, smooth=1.0)
    # The whole graph says that the covariates are independent: then all combinations count.
    whole = identify(graph, query).estimand
    assert whole is not None
    with pytest.raises(DataError, match="too many"):
        one(counts, whole)


@pytest.mark.slow
@pytest.mark.parametrize("estimand", [BACK_DOOR, FRONT_DOOR], ids=["back-door", "front-door"])
def test_intervals_cover_the_truth(estimand: Estimand) -> None:
    names, arrows, arcs = (
        ("WXY", ["WX", "WY", "XY"], [])
        if "W" in estimand.variables
        else ("XMY", ["XM", "MY"], ["XY"])
    )
    model = Model.draw(ADMG.from_edges(names, arrows, arcs), 11, levels=(2,))
    truth = model.effect(Query(("X",), ("Y",)), {"X": 1, "Y": 1})
    joint, rng, covered = model.joint(), np.random.default_rng(12), 0
    cells = np.indices(joint.shape).reshape(3, -1)
    for replicate in range(200):
        drawn = rng.multinomial(2000, joint.ravel())
        columns = [
            Coded(name, np.repeat(cells[i], drawn), ("0", "1")) for i, name in enumerate(names)
        ]
        found = one(Counts(columns), estimand, bootstrap=400, seed=replicate)
        covered += found.low <= truth <= found.high
    # 95 % of 200, within what a binomial leaves to chance in all but 1 of 1000 cases.
    assert 178 <= covered <= 199


def test_assignments_are_read() -> None:
    known = ["X", "a=b", "Y"]
    assert read_assignments(["X=1,a=b=2"], known, "--do") == {"X": "1", "a=b": "2"}
    assert read_assignments(["Y"], known, "--outcome", need_value=False) == {"Y": None}
    assert read_assignments(['"X=1,5"'], known, "--do") == {"X": "1,5"}
    for wrong, why in (
        (["X"], "a value is expected"),
        (["X="], "a value is expected"),
        (["Z=1"], "Z is not in the graph$"),
        (["x=1"], r"--do x=1: x is not in the graph \(did you mean X\?\)"),
        (["a=c=1", "X=1"], "a is not in the graph"),
        (["X=1", "X=2"], "names X twice"),
    ):
        with pytest.raises(UsageError, match=why):
            read_assignments(wrong, known, "--do")


def test_a_value_that_a_column_has_not_is_refused() -> None:
    with pytest.raises(UsageError, match=r"X has no value '7' \(it has 0, 1\)"):
        one(confounded(np.random.default_rng(1), 50), do={"X": "7"})
    with pytest.raises(UsageError, match="same variables"):
        one(confounded(np.random.default_rng(1), 50), versus={"W": "1"})
