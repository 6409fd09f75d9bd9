"""The prompts of sampled sessions as a tree of blocks: equal nodes are equal prompts so far."""

from __future__ import annotations

from collections.abc import Hashable

from registry.errors import CapExceeded, RecordError
from registry.session_scripts import MAX_BLOCKS
from registry.traces.session_table import TraceTurn


class BlockTree:
    """Nodes in order of first appearance.

    `span_tokens` of the trace make one block. Where that is less than the trace's
    block, a node is one id and stands for `per_node` blocks; else it is the tuple
    of ids that one block covers.
    """

    def __init__(self, span_tokens: int) -> None:
        self._span_tokens = span_tokens
        self._trace_block = 0
        self.per_node = 1
        self._ids_a_node = 1
        self._nodes: dict[tuple[int, Hashable], int] = {}
        self._owners: list[int] = []
        self._shared: list[bool] = []

    def path(self, turn: TraceTurn, session: int, most_blocks: int) -> tuple[list[int], int]:
        """The nodes of a turn's prompt, and how many blocks of them it has.

        Blocks of a file's own scope are of the session alone.
        """
        self._measure(turn.block_tokens)
        step = self._ids_a_node
        blocks = min(most_blocks, len(turn.blocks) // step * self.per_node)
        node, nodes = -1 if turn.scope == 0 else -2 - session, []
        for place in range(-(-blocks // self.per_node)):
            node = self._node(node, turn.blocks[place * step : (place + 1) * step], session)
            nodes.append(node)
        return nodes, blocks

    def numbered(self) -> tuple[list[int], int]:
        """Every node's number, shared ones first, and how many blocks are shared."""
        order = sorted(range(len(self._shared)), key=lambda node: not self._shared[node])
        numbers = [0] * len(order)
        for number, node in enumerate(order):
            numbers[node] = number
        return numbers, sum(self._shared) * self.per_node

    def _node(self, parent: int, ids: tuple[int, ...], session: int) -> int:
        node = self._nodes.setdefault((parent, ids), len(self._nodes))
        if node == len(self._owners):
            if (node + 1) * self.per_node > MAX_BLOCKS:
                raise CapExceeded(
                    "too many different blocks in the sample",
                    value=(node + 1) * self.per_node,
                    remedy=f"at most {MAX_BLOCKS:,}: a smaller sample, or a larger token_scale",
                )
            self._owners.append(session)
            self._shared.append(False)
        elif self._owners[node] != session:
            self._shared[node] = True
        return node

    def _measure(self, trace_block: int) -> None:
        if trace_block == self._trace_block:
            return
        span = self._span_tokens
        if self._trace_block or (span % trace_block and trace_block % span):
            raise RecordError(
                "the scripts' blocks and the trace's do not divide each other",
                value=f"{trace_block} tokens a block in the trace, token_scale x block = {span}",
                remedy="a token_scale of which one divides the other; one block size in the whole trace",
            )
        self._trace_block = trace_block
        self.per_node = max(1, trace_block // span)
        self._ids_a_node = max(1, span // trace_block)


def runs_of(numbers: list[int], per_node: int, first_node: int, kept: int, blocks: int) -> list[int]:
    """Ids of blocks `kept` to `blocks`, as runs `[first, count, ...]`; `numbers` are
    of the nodes from number `first_node` of the prompt on.
    """
    runs: list[int] = []
    for place, number in enumerate(numbers, first_node):
        begin, end = max(kept, place * per_node), min(blocks, (place + 1) * per_node)
        if begin >= end:
            continue
        first = number * per_node + begin - place * per_node
        if runs and runs[-2] + runs[-1] == first:
            runs[-1] += end - begin
        else:
            runs += [first, end - begin]
    return runs
