"""Acyclic directed mixed graphs (ADMGs): directed edges, and bidirected ones for latent causes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tierprune.bits import bits, closure, lowest, mask_of, turned

if TYPE_CHECKING:
    import networkx as nx


class CycleError(ValueError):
    """Directed edges run in a circle: `cycle` names its variables in order."""

    def __init__(self, cycle: list[str]) -> None:
        super().__init__("directed cycle: " + " -> ".join([*cycle, cycle[0]]))
        self.cycle = cycle


class ADMG:
    """A graph over n named variables; variable i is bit i of every set (see `tierprune.bits`).

    `parents[i]`, `children[i]` and `spouses[i]` are the sets of variables with an edge into i, out
    of i, and with a bidirected edge to i. Two variables may have both kinds of edge at once. The
    graph is not changed after it was made.
    """

    __slots__ = ("children", "index", "names", "parents", "spouses")

    def __init__(
        self,
        names: Sequence[str],
        parents: Sequence[int],
        children: Sequence[int],
        spouses: Sequence[int],
    ) -> None:
        self.names = tuple(names)
        self.index = {name: i for i, name in enumerate(self.names)}
        self.parents, self.children, self.spouses = list(parents), list(children), list(spouses)

    @classmethod
    def from_edges(
        cls,
        names: Sequence[str],
        directed: Iterable[tuple[str, str]] = (),
        bidirected: Iterable[tuple[str, str]] = (),
    ) -> ADMG:
        """Make the graph of these edges between names.

        Raises `ValueError` for a name given twice and an edge from a variable to itself, its kind
        `CycleError` for a directed cycle, and `KeyError` for an unknown name.
        """
        graph = cls(names, [0] * len(names), [0] * len(names), [0] * len(names))
        if len(graph.index) != len(names):
            raise ValueError("a variable is named twice")
        for a, b in directed:
            i, j = graph._ends(a, b)
            graph.children[i] |= 1 << j
            graph.parents[j] |= 1 << i
        for a, b in bidirected:
            i, j = graph._ends(a, b)
            graph.spouses[i] |= 1 << j
            graph.spouses[j] |= 1 << i
        cycle = graph.cycle()
        if cycle:
            raise CycleError(cycle)
        return graph

    def _ends(self, a: str, b: str) -> tuple[int, int]:
        if a == b:
            raise ValueError(f"an edge from {a} to itself")
        return self.index[a], self.index[b]

    def __len__(self) -> int:
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ADMG):
            return NotImplemented
        return (self.names, self.parents, self.spouses) == (
            other.names,
            other.parents,
            other.spouses,
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def everything(self) -> int:
        """The set of all variables."""
        return (1 << len(self.names)) - 1

    def mask(self, names: Iterable[str]) -> int:
        """Give the set of these names; `KeyError` for one that is unknown."""
        return mask_of(self.index[name] for name in names)

    def named(self, mask: int) -> list[str]:
        """List the names of a set, in the order of the graph."""
        return [self.names[i] for i in bits(mask)]

    def directed(self) -> Iterator[tuple[int, int]]:
        """Yield each directed edge (from, to)."""
        for i, children in enumerate(self.children):
            for j in bits(children):
                yield i, j

    def bidirected(self) -> Iterator[tuple[int, int]]:
        """Yield each bidirected edge once, the smaller end first."""
        for i, spouses in enumerate(self.spouses):
            for j in bits(spouses >> i + 1):
                yield i, i + 1 + j

    def ancestors(self, mask: int, within: int = -1) -> int:
        """Give `mask` and all ancestors of it, along edges between members of `within`."""
        return closure(self.parents.__getitem__, mask & within, within)

    def descendants(self, mask: int, within: int = -1) -> int:
        """Give `mask` and all descendants of it, along edges between members of `within`."""
        return closure(self.children.__getitem__, mask & within, within)

    def district(self, mask: int, within: int = -1) -> int:
        """Give `mask` and what bidirected edges between members of `within` connect to it."""
        return closure(self.spouses.__getitem__, mask & within, within)

    def districts(self, within: int = -1) -> list[int]:
        """Give the connected components of the bidirected edges between members of `within`.

        The component of the smallest variable first.
        """
        left, found = self.everything & within, []
        while left:
            district = self.district(1 << lowest(left), left)
            found.append(district)
            left &= ~district
        return found

    def order(self) -> list[int]:
        """Give the variables so that each comes after its parents, by number where that is free."""
        return self._sorted()[0]

    def cycle(self) -> list[str]:
        """Name the variables of one directed cycle in order, or nothing in an acyclic graph."""
        left = self._sorted()[1]
        if not left:
            return []
        # Each that is left has a parent that is left: walking back must come round.
        walk, seen = [lowest(left)], {lowest(left): 0}
        while True:
            back = lowest(self.parents[walk[-1]] & left)
            if back in seen:
                return [self.names[i] for i in reversed(walk[seen[back] :])]
            seen[back] = len(walk)
            walk.append(back)

    def _sorted(self) -> tuple[list[int], int]:
        from heapq import heapify, heappop, heappush

        missing = [parents.bit_count() for parents in self.parents]
        ready = [i for i, count in enumerate(missing) if count == 0]
        heapify(ready)
        order, left = [], self.everything
        while ready:
            i = heappop(ready)
            order.append(i)
            left &= ~(1 << i)
            for j in bits(self.children[i]):
                missing[j] -= 1
                if missing[j] == 0:
                    heappush(ready, j)
        return order, left

    def keeping(self, directed_into: Sequence[int], bidirected_at: Sequence[int]) -> ADMG:
        """Give the graph on the same variables with fewer edges.

        Of the directed edges into i those from `directed_into[i]` stay, of the bidirected edges at
        i those to `bidirected_at[i]`, which must be symmetric.
        """
        parents = [have & keep for have, keep in zip(self.parents, directed_into, strict=True)]
        spouses = [have & keep for have, keep in zip(self.spouses, bidirected_at, strict=True)]
        return ADMG(self.names, parents, turned(parents), spouses)

    def without_into(self, mask: int) -> ADMG:
        """Give the graph without the edges into `mask`, bidirected ones included."""
        keep = ~mask
        inside = [0 if mask >> i & 1 else -1 for i in range(len(self.names))]
        return ADMG(
            self.names,
            [have & stay for have, stay in zip(self.parents, inside, strict=True)],
            [have & keep for have in self.children],
            [have & stay & keep for have, stay in zip(self.spouses, inside, strict=True)],
        )

    def without_out_of(self, mask: int) -> ADMG:
        """Give the graph without the directed edges out of `mask`."""
        keep = ~mask
        inside = [0 if mask >> i & 1 else -1 for i in range(len(self.names))]
        return ADMG(
            self.names,
            [have & keep for have in self.parents],
            [have & stay for have, stay in zip(self.children, inside, strict=True)],
            self.spouses,
        )

    def projected(self, latent: int) -> ADMG:
        """Give the latent projection: the graph over the variables outside the set `latent`.

        It has the same m-separations among them and the same effects (Verma 1993).
        """
        parents, children, spouses = self.parents[:], self.children[:], self.spouses[:]
        for u in bits(latent):
            into, out, beside = parents[u], children[u], spouses[u]
            for i in bits(out):
                parents[i] |= into
                spouses[i] |= (out | beside) & ~(1 << i)
            for i in bits(into):
                children[i] |= out
            for i in bits(beside):
                spouses[i] |= out & ~(1 << i)
            gone = ~(1 << u)
            for i in bits(into | out | beside):
                parents[i] &= gone
                children[i] &= gone
                spouses[i] &= gone
            parents[u] = children[u] = spouses[u] = 0
        return ADMG(self.names, parents, children, spouses).among(self.everything & ~latent)

    def among(self, mask: int) -> ADMG:
        """Give the graph over the variables in `mask` alone, with the edges between them."""
        stay = list(bits(mask))
        place = {old: new for new, old in enumerate(stay)}

        def moved(sets: list[int]) -> list[int]:
            return [mask_of(place[j] for j in bits(sets[i] & mask)) for i in stay]

        names = [self.names[i] for i in stay]
        return ADMG(names, moved(self.parents), moved(self.children), moved(self.spouses))

    @classmethod
    def from_networkx(
        cls, directed: nx.DiGraph[Any], bidirected: nx.Graph[Any] | None = None
    ) -> ADMG:
        """Make the graph of a networkx graph for each kind of edge; nodes become their `str`.

        Raises as `from_edges` does.
        """
        names = [str(node) for node in directed]
        more = [] if bidirected is None else [str(n) for n in bidirected if n not in directed]
        return cls.from_edges(
            names + more,
            ((str(a), str(b)) for a, b in directed.edges()),
            () if bidirected is None else ((str(a), str(b)) for a, b in bidirected.edges()),
        )

    def to_networkx(self) -> tuple[nx.DiGraph[str], nx.Graph[str]]:
        """Give the directed and the bidirected edges as networkx graphs on all names."""
        import networkx as nx

        directed: nx.DiGraph[str] = nx.DiGraph()
        bidirected: nx.Graph[str] = nx.Graph()
        for graph in (directed, bidirected):
            graph.add_nodes_from(self.names)
        directed.add_edges_from((self.names[i], self.names[j]) for i, j in self.directed())
        bidirected.add_edges_from((self.names[i], self.names[j]) for i, j in self.bidirected())
        return directed, bidirected
