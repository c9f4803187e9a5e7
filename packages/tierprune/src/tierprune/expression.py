"""Estimands: sums, products and quotients of probabilities of the observational joint.

Every expression is made by an `Algebra`, which gives equal expressions the same object. So a part
that occurs a hundred times is stored once, and is compared by identity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tierprune.bits import bits


@dataclass(frozen=True, eq=False, slots=True)
class Expression:
    """A function of the variables `free` (a set, see `tierprune.bits`); `number` is its age."""

    free: int
    number: int

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The expressions that this one is made of."""
        return ()


@dataclass(frozen=True, eq=False, slots=True)
class Probability(Expression):
    """P(variables | given)."""

    variables: int
    given: int


@dataclass(frozen=True, eq=False, slots=True)
class Product(Expression):
    """The product of the factors; 1 where there is none."""

    factors: tuple[Expression, ...]

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The factors."""
        return self.factors


@dataclass(frozen=True, eq=False, slots=True)
class Quotient(Expression):
    """`above` divided by `below`."""

    above: Expression
    below: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        """What is divided, and by what."""
        return self.above, self.below


@dataclass(frozen=True, eq=False, slots=True)
class Sum(Expression):
    """The sum of `body` over all values of the variables `bound`, which mean nothing outside."""

    bound: int
    body: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The body."""
        return (self.body,)


_DEEPEST = 8  # quotients inside one another into which a sum is moved: a bound on the work


class Algebra:
    """Makes expressions, each in a simple form that is equal to what was asked for.

    The rules, exact wherever the longer form is defined: P(a | c) P(b | a, c) = P(a, b | c); a sum
    over a variable on the left of one probability and nowhere else drops it there; a sum of a
    product falls apart where its factors share no bound variable, and goes into a quotient's upper
    part where the lower does not depend on what is summed; a quotient is reduced, also by
    P(a, b | c) / P(a | c) = P(b | a, c).
    """

    def __init__(self) -> None:
        self._known: dict[Any, Expression] = {}
        self._deep = 0
        self.one: Expression = self._intern(Product, 0, ())

    def _intern(self, kind: Any, free: int, *content: Any) -> Any:
        key = (kind, *content)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = kind(free, len(self._known), *content)
        return found

    def probability(self, variables: int, given: int = 0) -> Expression:
        """Give P(variables | given), of disjoint sets; 1 for no variables."""
        if variables & given:
            raise ValueError("a variable on both sides of a probability")
        if not variables:
            return self.one
        made: Probability = self._intern(Probability, variables | given, variables, given)
        return made

    def product(self, factors: Iterable[Expression]) -> Expression:
        """Give the product, probabilities first (in the order of their variables)."""
        leaves: list[Probability] = []
        others: list[Expression] = []
        for factor in factors:
            for part in factor.factors if isinstance(factor, Product) else (factor,):
                if isinstance(part, Probability):
                    leaves.append(part)
                else:
                    others.append(part)
        leaves = self._chained(leaves)
        leaves.sort(key=lambda leaf: (leaf.variables, leaf.given))
        others.sort(key=lambda part: part.number)
        content: tuple[Expression, ...] = (*leaves, *others)
        if len(content) == 1:
            return content[0]
        free = 0
        for part in content:
            free |= part.free
        made: Expression = self._intern(Product, free, content)
        return made

    def _chained(self, leaves: list[Probability]) -> list[Probability]:
        """Merge P(a | c) and P(b | a, c) wherever both are there."""
        by_scope: dict[int, Probability] = {}
        apart = []
        # What a leaf is given is smaller than its scope, so its partner has come before it.
        for leaf in sorted(leaves, key=lambda leaf: (leaf.free.bit_count(), leaf.free, leaf.given)):
            made: Any = leaf
            before = by_scope.pop(leaf.given, None)
            if before is not None:
                made = self.probability(before.variables | leaf.variables, before.given)
            if made.free in by_scope:
                apart.append(by_scope[made.free])
            by_scope[made.free] = made
        return [*by_scope.values(), *apart]

    def quotient(self, above: Expression, below: Expression) -> Expression:
        """Give above / below, reduced."""
        if isinstance(above, Sum) and not below.free & above.bound:
            inside = self.quotient(above.body, below)
            if not isinstance(inside, Quotient) and not above.bound & ~inside.free:
                return self.sum(above.bound, inside)  # it cancelled in every term
        left, right = list(_factors(above)), []
        for factor in _factors(below):
            if factor in left:
                left.remove(factor)
            else:
                right.append(factor)
        for factor in list(right):
            if not isinstance(factor, Probability):
                continue
            for at, whole in enumerate(left):
                if (
                    isinstance(whole, Probability)
                    and whole.given == factor.given
                    and not factor.variables & ~whole.variables
                ):
                    rest = whole.variables & ~factor.variables
                    left[at] = self.probability(rest, whole.given | factor.variables)
                    right.remove(factor)
                    break
        above, below = self.product(left), self.product(right)
        if below is self.one:
            return above
        made: Expression = self._intern(Quotient, above.free | below.free, above, below)
        return made

    def sum(self, bound: int, body: Expression) -> Expression:
        """Give the sum of `body` over `bound`; `ValueError` unless `body` depends on all of it."""
        if bound & ~body.free:
            raise ValueError("a sum over a variable that its body does not have")
        while bound:
            shorter, left = self._shorter(bound, _factors(body))
            if left == bound:
                break
            bound, body = left, self.product(shorter)
        return self._apart(bound, body) if bound else body

    def _shorter(self, bound: int, factors: tuple[Expression, ...]) -> tuple[list[Expression], int]:
        """Sum single factors where no other one depends on what is summed.

        Gives the factors and what is left to sum over. From the last to the first, since a
        variable is mostly alone once those after it are gone.
        """
        before = [0]  # at i, what factors 0 to i - 1 depend on
        for factor in factors:
            before.append(before[-1] | factor.free)
        after, shorter = 0, []
        for at in range(len(factors) - 1, -1, -1):
            factor, others = factors[at], before[at] | after
            made, done = self._without(factor, bound & ~others, len(factors) > 1)
            # A sum over what has cancelled would be a number of levels: such a factor stays.
            if factor.free & bound & ~(done | made.free | others):
                made, done = factor, 0
            bound &= ~done
            after |= made.free
            shorter.append(made)
        return shorter, bound

    def _without(self, factor: Expression, alone: int, beside: bool) -> tuple[Expression, int]:
        """Sum one factor over those of the variables `alone`, which no other has, where it can.

        Gives the sum and the variables that it is over; `beside` says whether there are others.
        """
        mine = factor.free & alone
        if isinstance(factor, Probability):
            mine &= factor.variables
            return self.probability(factor.variables & ~mine, factor.given), mine
        if isinstance(factor, Quotient) and self._deep < _DEEPEST:
            mine &= ~factor.below.free
            self._deep += 1
            above = self.sum(mine, factor.above)
            self._deep -= 1
            return self.quotient(above, factor.below), mine
        if isinstance(factor, Sum) and beside:
            return self.sum(mine, factor), mine
        return factor, 0

    def _apart(self, bound: int, body: Expression) -> Expression:
        """Sum each group of factors that share bound variables by itself."""
        outside: list[Expression] = []
        groups: list[tuple[int, list[Expression]]] = []
        for factor in _factors(body):
            shared, members = factor.free & bound, [factor]
            if not shared:
                outside.append(factor)
                continue
            rest = []
            for group in groups:
                if group[0] & shared:
                    shared |= group[0]
                    members = group[1] + members
                else:
                    rest.append(group)
            groups = [*rest, (shared, members)]
        if len(groups) == 1 and not outside:
            return self._one_sum(bound, body)
        return self.product([*outside, *(self.sum(s, self.product(m)) for s, m in groups)])

    def _one_sum(self, bound: int, body: Expression) -> Expression:
        if isinstance(body, Sum):
            return self.sum(bound | body.bound, body.body)
        made: Expression = self._intern(Sum, body.free & ~bound, bound, body)
        return made


def _factors(expression: Expression) -> tuple[Expression, ...]:
    return expression.factors if isinstance(expression, Product) else (expression,)


@dataclass(frozen=True, eq=False)
class Estimand:
    """A formula for a query: `root`, over the variables `names` (variable i is bit i).

    `arbitrary` names variables that the formula mentions and its value does not depend on: set
    them to any value that the data support.
    """

    names: tuple[str, ...]
    root: Expression
    arbitrary: tuple[str, ...] = ()

    def named(self, mask: int) -> list[str]:
        """List the names of a set."""
        return [self.names[i] for i in bits(mask)]

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """All variables of the formula, in its order: the columns that estimating it needs."""
        used = 0
        for part in in_order(self.root):
            if isinstance(part, Probability):
                used |= part.free
        return tuple(self.named(used))

    @cached_property
    def size(self) -> int:
        """The number of different expressions in the formula."""
        return sum(1 for _ in in_order(self.root))

    @cached_property
    def written_size(self) -> int:
        """The number of expressions when each is written as often as it occurs."""
        total: dict[int, int] = {}
        for part in in_order(self.root):
            total[part.number] = 1 + sum(total[p.number] for p in part.parts)
        return total[self.root.number]

    def __str__(self) -> str:
        from tierprune.rendering import to_text

        return to_text(self)


def in_order(root: Expression) -> Iterator[Expression]:
    """Yield each different expression of `root` once, parts before the whole."""
    seen: set[int] = set()
    # Not by recursion: a formula may be deeper than Python's stack.
    waiting: list[tuple[Expression, bool]] = [(root, False)]
    while waiting:
        node, ready = waiting.pop()
        if ready:
            yield node
        elif node.number not in seen:
            seen.add(node.number)
            waiting.append((node, True))
            waiting += [(part, False) for part in reversed(node.parts)]


def uses(order: Sequence[Expression]) -> dict[int, int]:
    """Count, by number, how often each expression is a part of another one of `order`."""
    count = {node.number: 0 for node in order}
    for node in order:
        for part in node.parts:
            count[part.number] += 1
    return count
