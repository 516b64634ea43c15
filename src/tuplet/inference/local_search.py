"""Improving candidate outcomes by single flips, for engines that cannot maximise exactly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tuplet.typing import UNKNOWN, Codes, Floats


def best_by_flips(
    candidates: Codes, cards: tuple[int, ...], k: int, weigh: Callable[[Codes], Floats], max_rounds: int = 50
) -> tuple[Codes, Floats]:
    """Return the k best outcomes that single flips reach from the candidates.

    In every round all flips of one variable of the current k best are weighed, until nothing changes.

    Parameters
    ----------
    candidates : array of int, shape (c, n, m)
    weigh : callable
        Log-weights (s, n) of codes (s, n, m).

    Returns
    -------
    codes (n, k, m) and log_weights (n, k), best first; `UNKNOWN` and minus infinity where fewer were found
    """
    hashes = [
        np.random.default_rng(j).integers(0, 2**63, card, dtype=np.uint64) for j, card in enumerate(cards)
    ]
    pool, weights = _keep_best(candidates, weigh(candidates), k, hashes)
    for _ in range(max_rounds):
        flips = _all_flips(np.maximum(pool, 0), cards)
        if not len(flips):
            break
        merged = np.concatenate([pool, flips])
        merged_weights = np.concatenate([weights, weigh(flips)])
        before = weights
        pool, weights = _keep_best(merged, merged_weights, k, hashes)
        if weights.shape == before.shape and np.array_equal(weights, before):
            break
    missing = k - len(pool)
    pool = np.pad(pool, ((0, missing), (0, 0), (0, 0)), constant_values=UNKNOWN)
    weights = np.pad(weights, ((0, missing), (0, 0)), constant_values=-np.inf)
    return pool.transpose(1, 0, 2), weights.T


def _all_flips(codes: Codes, cards: tuple[int, ...]) -> Codes:
    """Every outcome that differs from one of codes (c, n, m) in one variable."""
    flips = []
    for j, card in enumerate(cards):
        for shift in range(1, card):
            flipped = codes.copy()
            flipped[..., j] = (flipped[..., j] + shift) % card
            flips.append(flipped)
    return np.concatenate(flips) if flips else np.empty((0, *codes.shape[1:]), dtype=np.intp)


def _keep_best(codes: Codes, weights: Floats, k: int, hashes: list) -> tuple[Codes, Floats]:
    """Keep the k best distinct outcomes of every row; repeated ones are recognised by a 64-bit hash."""
    key = np.zeros(weights.shape, dtype=np.uint64)
    for j, table in enumerate(hashes):
        key += table[np.maximum(codes[..., j], 0)]
    order = np.lexsort((codes[..., 0] == UNKNOWN, key), axis=0)  # real outcomes before placeholders
    sorted_key = np.take_along_axis(key, order, axis=0)
    repeated = np.zeros(key.shape, bool)
    np.put_along_axis(repeated, order[1:], sorted_key[1:] == sorted_key[:-1], axis=0)
    ranked = np.where(repeated | (codes[..., 0] == UNKNOWN), -np.inf, weights)
    best = np.argsort(-ranked, axis=0, kind="stable")[:k]
    chosen = np.take_along_axis(codes, best[..., None], axis=0)
    chosen_weights = np.take_along_axis(ranked, best, axis=0)
    return np.where(np.isneginf(chosen_weights)[..., None], UNKNOWN, chosen), chosen_weights
