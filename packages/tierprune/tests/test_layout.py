"""Layout: every variable in its column, no overlap, and fewer crossings than as listed."""

import itertools
import random

from smallgraphs import random_tiered

from tierprune.layout import Key, Layout, layered


def crossings(layout: Layout, edges: list[tuple[str, str]]) -> int:
    """Count pairs of edge pieces between two columns that cross."""
    column = {key: c for c, keys in enumerate(layout.columns) for key in keys}
    pieces: list[tuple[int, float, float]] = []
    for i, (a, b) in enumerate(edges):
        chain: list[Key] = [a, *layout.bends.get(i, []), b]
        for one, two in itertools.pairwise(chain):
            if column[one] != column[two]:
                pieces.append((column[one], layout.y[one], layout.y[two]))
    return sum(
        p[0] == q[0] and (p[1] - q[1]) * (p[2] - q[2]) < 0
        for p, q in itertools.combinations(pieces, 2)
    )


def test_columns_keep_their_variables_apart() -> None:
    rng = random.Random(0)
    for _ in range(30):
        graph, tiers = random_tiered(rng, [rng.randint(1, 6) for _ in range(4)])
        edges = [(graph.names[i], graph.names[j]) for i, j in graph.directed()]
        sizes: dict[Key, float] = {name: rng.choice((0.4, 0.6)) for name in graph.names}
        layout = layered(tiers.groups, edges, sizes, bend=0.1)
        for group, keys in zip(tiers.groups, layout.columns, strict=True):
            assert {key for key in keys if isinstance(key, str)} == set(group)
            for low, high in itertools.pairwise(keys):
                room = sum(sizes.get(key, 0.1) for key in (low, high)) / 2
                assert layout.y[high] - layout.y[low] >= room - 1e-9
        for i, (a, b) in enumerate(edges):
            between = range(tiers.of[a], tiers.of[b] - 1)
            assert layout.bends.get(i, []) == [(i, c) for c in between]


def test_a_tangled_matching_is_untangled() -> None:
    left, right = [f"a{i}" for i in range(8)], [f"b{i}" for i in range(8)]
    edges = list(zip(left, random.Random(1).sample(right, 8), strict=True))
    sizes: dict[Key, float] = dict.fromkeys(left + right, 1.0)
    assert crossings(layered([left, right], edges, sizes, bend=0.1), edges) == 0


def test_crossings_are_fewer_than_in_the_order_given() -> None:
    rng = random.Random(2)
    before = after = 0
    for _ in range(10):
        graph, tiers = random_tiered(rng, [6, 6, 6, 6], directed=0.12)
        edges = [(graph.names[i], graph.names[j]) for i, j in graph.directed()]
        edges = [(a, b) for a, b in edges if tiers.of[a] != tiers.of[b]]
        sizes: dict[Key, float] = dict.fromkeys(graph.names, 1.0)
        layout = layered(tiers.groups, edges, sizes, bend=0.3)
        after += crossings(layout, edges)
        y = {key: float(keys.index(key)) for keys in tiers.groups for key in keys}
        plain = Layout([list(group) for group in tiers.groups], dict(y), {})
        for i in range(len(edges)):
            plain.bends[i] = layout.bends[i]
            for key in layout.bends[i]:
                plain.columns[key[1]].append(key)  # type: ignore[index]
                plain.y[key] = 6.0 + i
        before += crossings(plain, edges)
    assert after < before / 2
