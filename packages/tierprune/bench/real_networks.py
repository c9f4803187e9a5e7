"""Real networks with known truth: learning a query's tiers, all tiers, and causal-learn's FCI.

    python bench/real_networks.py [--networks alarm,insurance,hailfinder,win95pts,hepar2]
        [--seeds 5] [--rows 20000] [--max-cond 3]
        [--peer-seeds 2] [--budget-s 60] [--no-peer] [--no-write]

The networks come with pgmpy. Each is tiered by depth: the longest way from a root, cut into at most
five tiers of about equal size. Each seed drops up to three variables with two to four children, so
that they are latent; only such as leave no bidirected edge between two tiers (checked on the latent
projection). The query is two of the later variables at random. Rows are sampled from the network's
own tables. The truth is the PAG of the projected graph, by m-separation. Precision and recall are
over the edges of the query's band; those of the full search on the same edges are equal whenever
its tests are the same, which is reported as such. causal-learn runs with the same data, tests,
alpha, tiers and bound on the size of sets (see `discovery.peer`), on the first seeds, and is ended
after the budget: at most 10 minutes in all.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import discovery
import numpy as np

from papercuts.benchmarks import Report, machine, today
from papercuts.errors import DataError
from tierprune.admg import ADMG
from tierprune.bits import bits
from tierprune.components import check_tiers
from tierprune.dataset import Coded
from tierprune.discovery import discover
from tierprune.independence.contingency import Contingency
from tierprune.query import Query, band_of
from tierprune.scoring import score, true_pag
from tierprune.simulation import DiscreteModel, sample
from tierprune.tiers import Tiers

REPORT = Report(__file__)

NETWORKS = "alarm,insurance,hailfinder,win95pts,hepar2"
ALPHA, TIERS, LATENT, MOST_CHILDREN = 0.01, 5, 3, 4


def network(name: str) -> DiscreteModel:
    """Read a network of pgmpy as a model without latent causes."""
    import warnings

    from pgmpy.utils import get_example_model

    with warnings.catch_warnings():  # its successor downloads what the package ships
        warnings.simplefilter("ignore", FutureWarning)
        model = get_example_model(name)
    names = sorted(model.nodes())
    graph = ADMG.from_edges(names, [(str(a), str(b)) for a, b in model.edges()])
    states, tables = [], []
    for i, node in enumerate(names):
        cpd = model.get_cpds(node)
        axes = [cpd.variables.index(names[j]) for j in bits(graph.parents[i])]
        table = np.transpose(cpd.values, [*axes, 0])
        tables.append(table / table.sum(axis=-1, keepdims=True))
        states.append(int(cpd.variable_card))
    return DiscreteModel(graph, tuple(states), (), (), tuple(tables))


def by_depth(graph: ADMG, count: int) -> dict[str, int]:
    """Give tiers by the longest way from a root, about equally large."""
    depth = [0] * len(graph)
    for i in graph.order():
        depth[i] = 1 + max((depth[j] for j in bits(graph.parents[i])), default=0)
    sizes = np.bincount(depth)
    before = np.cumsum(sizes) - sizes
    raw = {d: int(before[d] * count // len(graph)) for d in set(depth)}
    order = {value: rank for rank, value in enumerate(sorted(set(raw.values())), 1)}
    return {name: order[raw[depth[i]]] for i, name in enumerate(graph.names)}


def with_latent(graph: ADMG, tier: dict[str, int], rng: Any, count: int) -> tuple[ADMG, list[str]]:
    """Drop variables that confound others of one tier; give the projection and what was dropped."""
    dropped: list[str] = []
    for i in rng.permutation(len(graph)).tolist():
        if len(dropped) == count:
            break
        if not 2 <= graph.children[i].bit_count() <= MOST_CHILDREN:
            continue
        tried = [*dropped, graph.names[i]]
        left = graph.projected(graph.mask(tried))
        try:
            check_tiers(left, tiers_of(left, tier))
        except DataError:
            continue
        dropped = tried
    return graph.projected(graph.mask(dropped)), dropped


def tiers_of(graph: ADMG, tier: dict[str, int]) -> Tiers:
    """Give the tiers of the variables of a graph."""
    steps = sorted({tier[name] for name in graph.names})
    return Tiers(tuple(tuple(n for n in graph.names if tier[n] == s) for s in steps))


def one(name: str, model: DiscreteModel, seed: int, given: Any) -> dict[str, Any]:
    """Run one seed."""
    rng = np.random.default_rng(seed)
    tier = by_depth(model.graph, TIERS)
    rows = sample(model, given.rows, rng)
    constant = [n for i, n in enumerate(model.graph.names) if len(np.unique(rows[:, i])) < 2]
    graph, dropped = with_latent(model.graph, tier, rng, LATENT)
    graph = graph.projected(graph.mask(n for n in constant if n in graph.index))
    tiers = tiers_of(graph, tier)
    late = rng.permutation([n for g in tiers.groups[1:] for n in g]).tolist()
    treatment, outcome = sorted(late[:2], key=lambda n: tiers.of[n])
    query = Query((treatment,), (outcome,))
    band = band_of(query, tiers)
    places = [model.graph.index[n] for n in tiers.names]
    columns = []
    for n, place in zip(tiers.names, places, strict=True):
        levels, codes = np.unique(rows[:, place], return_inverse=True)
        columns.append(Coded(n, codes, tuple(map(str, levels))))
    row: dict[str, Any] = {
        "network": name, "seed": seed, "variables": len(graph), "latent": dropped,
        "bidirected": len(list(graph.bidirected())), "constant": constant,
        "tiers": [len(g) for g in tiers.groups], "query": str(query),
    }  # fmt: skip
    pags = {}
    for which, wanted in (("query", band), ("full", None)):
        begun = time.perf_counter()
        test = Contingency(columns, alpha=ALPHA)
        found = discover(test, tiers, wanted, max_cond=given.max_cond)
        row[which] = {"wall_s": time.perf_counter() - begun, "tests": found.tests}
        pags[which] = found.pag
    begun = time.perf_counter()
    order = [graph.index[n] for n in tiers.names]
    truth = true_pag(_reordered(graph, order), tiers, band)
    row["oracle_s"] = time.perf_counter() - begun
    for which, pag in pags.items():
        for part in score(pag, truth, tiers=tiers, band=band)[:2]:
            row[which][part.part] = (part.precision, part.recall)
    if not given.no_peer and seed < given.peer_seeds:
        data = np.column_stack([column.codes for column in columns])
        row["causal-learn"] = discovery.run_peer("gsq", data, tiers, given.budget_s, given.max_cond)
    return row


def _reordered(graph: ADMG, order: list[int]) -> ADMG:
    names = [graph.names[i] for i in order]
    directed = [(graph.names[i], graph.names[j]) for i, j in graph.directed()]
    bidirected = [(graph.names[i], graph.names[j]) for i, j in graph.bidirected()]
    return ADMG.from_edges(names, directed, bidirected)


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Give a line for each network: means over its seeds, ranges of ratios."""
    lines = [
        "| network | variables | edges P / R | arrowheads P / R | tests query / full | "
        "s query / full | full / query tests | causal-learn s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(row["network"] for row in rows):
        mine = [row for row in rows if row["network"] == name]

        def mean(which: str, key: str, place: int | None = None, mine: Any = mine) -> float:
            values = [r[which][key] if place is None else r[which][key][place] for r in mine]
            return statistics.mean(v for v in values if v is not None)

        gains = [r["full"]["tests"] / max(1, r["query"]["tests"]) for r in mine]
        peers = [r["causal-learn"] for r in mine if "causal-learn" in r]
        peer = "not run"
        if peers:
            ended = [p["wall_s"] for p in peers if p["ended"]]
            late = len(peers) - len(ended)
            said = [", ".join(f"{wall_s:.0f}" for wall_s in ended)] if ended else []
            peer = "; ".join([*said, f"{late} of {len(peers)} timed out"] if late else said)
        lines.append(
            f"| {name} | {mine[0]['variables']} | {mean('query', 'adjacency', 0):.3f} / "
            f"{mean('query', 'adjacency', 1):.3f} | {mean('query', 'arrowhead', 0):.3f} / "
            f"{mean('query', 'arrowhead', 1):.3f} | {mean('query', 'tests'):.0f} / "
            f"{mean('full', 'tests'):.0f} | {mean('query', 'wall_s'):.1f} / "
            f"{mean('full', 'wall_s'):.1f} | {min(gains):.1f} to {max(gains):.1f} | {peer} |"
        )
    return lines


def main() -> None:
    """Run all and write the section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", default=NETWORKS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--max-cond", type=int, default=3)
    parser.add_argument("--peer-seeds", type=int, default=2)
    parser.add_argument("--budget-s", type=float, default=60.0)
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--no-write", action="store_true")
    given = parser.parse_args()
    rows = []
    for name in given.networks.split(","):
        model = network(name)
        for seed in range(given.seeds):
            rows.append(one(name, model, seed, given))
            print(rows[-1], flush=True)
    lines = [
        "## Real networks",
        "",
        f"{today()}, {machine()}. `bench/real_networks.py --seeds {given.seeds} "
        f"--rows {given.rows} --max-cond {given.max_cond}`: tiers by depth, up to {LATENT} "
        f"variables dropped, G2 tests at alpha {ALPHA}; precision (P) and recall (R) against the "
        "true local PAG, over the edges that the query needs; means over the seeds. causal-learn, "
        f"with the same bound, on the first {given.peer_seeds} seeds, ended after "
        f"{given.budget_s:.0f} s.",
        "",
        *table(rows),
    ]
    print("\n".join(lines))
    if not given.no_write:
        results = REPORT.read_results()
        results["real_networks"] = {
            "date": today(), "machine": machine(), "rows": rows,
        }  # fmt: skip
        REPORT.write_results(results)
        REPORT.write_section("real_networks", lines)


if __name__ == "__main__":
    main()
