# mypy: allow-untyped-defs, allow-incomplete-defs
r"""The nested H-score on a CUDA device: its four matrix products, and nothing else that takes time.

Of f and g, (n, k), the value needs f^T f and g^T g, the gradients one product a side: the library's, in the features'
own dtype with sums in float32. All else is three passes over rows or over k x k numbers, each one kernel:

1. `_sums`: means, sums of f * g, and for the unbiased estimate squares of cumulative sums along each row.
2. `_join`: what these and both Gram matrices give to the score. Gradients need both matrices again; they are symmetric,
   so one k x k matrix keeps them, f's above its diagonal and g's below.
3. `_begin`: gradients without their product, into which the product is then added in place; `_weigh`: the k x k
   factor of that product.

No other n x k numbers are made, no sum depends on the order in which programs run, and nothing is read by the host: a
step can be captured as a CUDA graph. Second derivatives are those of the plain formula in `featgeo.nesting.scores`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

# As measured on an H200: numbers of a tile of rows, in passes that write as many and in those that only sum.
ELEMENTS, SUM_ELEMENTS = 1024, 4096
TILE = 32  # rows and columns of a tile of k x k numbers
WIDEST = 4096  # dimensions that a tile of one row holds
PROGRAMS = 2  # for each multiprocessor, that sum up rows: enough to fill it
DTYPES = (torch.float32, torch.bfloat16, torch.float16)

Score = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@triton.jit
def _sums(
    f_at, g_at, end_at, sums_at, squares_at, n, k, ROWS: tl.constexpr, WIDE: tl.constexpr, UNBIASED: tl.constexpr
):
    """Of the rows of one program: sums of f, g and f * g less the first row, and squares of cumulative sums."""
    column = tl.arange(0, WIDE)[None, :]
    there = column < k
    first_f = tl.load(f_at + column, mask=there, other=0).to(tl.float32)
    first_g = tl.load(g_at + column, mask=there, other=0).to(tl.float32)
    end = tl.load(end_at + column, mask=there, other=0)
    of_f = tl.zeros((ROWS, WIDE), tl.float32)
    of_g = tl.zeros((ROWS, WIDE), tl.float32)
    of_both = tl.zeros((ROWS, WIDE), tl.float32)
    squares = tl.zeros((ROWS, WIDE), tl.float32)
    for start in range(tl.program_id(0) * ROWS, n, tl.num_programs(0) * ROWS):
        row = start + tl.arange(0, ROWS)[:, None]
        known = (row < n) & there
        at = row.to(tl.int64) * k + column
        f = tl.load(f_at + at, mask=known, other=0).to(tl.float32)
        g = tl.load(g_at + at, mask=known, other=0).to(tl.float32)
        f_less = tl.where(known, f - first_f, 0)
        g_less = tl.where(known, g - first_g, 0)
        of_f += f_less
        of_g += g_less
        of_both += f_less * g_less
        if UNBIASED:
            sofar = tl.cumsum(f * g, 1)
            squares += end * sofar * sofar
    place = sums_at + tl.program_id(0) * 3 * k + tl.arange(0, WIDE)
    inside = tl.arange(0, WIDE) < k
    tl.store(place, tl.sum(of_f, 0), mask=inside)
    tl.store(place + k, tl.sum(of_g, 0), mask=inside)
    tl.store(place + 2 * k, tl.sum(of_both, 0), mask=inside)
    tl.store(squares_at + tl.program_id(0), tl.sum(squares))


@triton.jit
def _covariances(f_at, g_at, weight_at, sums_at, vectors_at, block, n, k, n_sums, TILE: tl.constexpr):
    """Weighted sum of the covariances of a block of dimensions, whose means are written."""
    column = block * TILE + tl.arange(0, TILE)
    there = column < k
    of_f = tl.zeros((TILE, TILE), tl.float32)
    of_g = tl.zeros((TILE, TILE), tl.float32)
    of_both = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, n_sums, TILE):
        part = start + tl.arange(0, TILE)[:, None]
        known = (part < n_sums) & there[None, :]
        at = sums_at + part * 3 * k + column[None, :]
        of_f += tl.load(at, mask=known, other=0)
        of_g += tl.load(at + k, mask=known, other=0)
        of_both += tl.load(at + 2 * k, mask=known, other=0)
    f_mean = tl.sum(of_f, 0) / n
    g_mean = tl.sum(of_g, 0) / n
    covariance = tl.sum(of_both, 0) / n - f_mean * g_mean
    first_f = tl.load(f_at + column, mask=there, other=0).to(tl.float32)
    first_g = tl.load(g_at + column, mask=there, other=0).to(tl.float32)
    tl.store(vectors_at + column, f_mean + first_f, mask=there)
    tl.store(vectors_at + k + column, g_mean + first_g, mask=there)
    return tl.sum(tl.load(weight_at + column, mask=there, other=0) * covariance)


@triton.jit
def _products(f_gram_at, g_gram_at, weight_at, kept_at, vectors_at, tile, n, k, TILE: tl.constexpr):
    """Weighted sum of the products of a tile of both Gram matrices, which are written as they are kept."""
    blocks = tl.cdiv(k, TILE)
    row = (tile // blocks) * TILE + tl.arange(0, TILE)[:, None]
    column = (tile % blocks) * TILE + tl.arange(0, TILE)[None, :]
    there = (row < k) & (column < k)
    at = row * k + column
    f_gram = tl.load(f_gram_at + at, mask=there, other=0) / n
    g_gram = tl.load(g_gram_at + at, mask=there, other=0) / n
    tl.store(kept_at + at, tl.where(row <= column, f_gram, g_gram).to(kept_at.dtype.element_ty), mask=there)
    tl.store(vectors_at + 2 * k + row + 0 * column, g_gram, mask=there & (row == column))
    weight = tl.load(weight_at + tl.maximum(row, column), mask=there, other=0)
    return tl.sum(weight * f_gram * g_gram)


@triton.jit
def _join(
    f_at, g_at, f_gram_at, g_gram_at, weight_at, sums_at, kept_at, vectors_at, parts_at,
    n, k, n_sums, factor, TILE: tl.constexpr,
):  # fmt: skip
    """Each program's part of the score: of the covariances of some columns, or of some products of Gram matrices."""
    blocks = tl.cdiv(k, TILE)
    program = tl.program_id(0)
    if program < blocks:
        part = _covariances(f_at, g_at, weight_at, sums_at, vectors_at, program, n, k, n_sums, TILE)
    else:
        part = -_products(f_gram_at, g_gram_at, weight_at, kept_at, vectors_at, program - blocks, n, k, TILE) / 2
    tl.store(parts_at + program, factor * part)


@triton.jit
def _add(parts_at, squares_at, score_at, n, n_parts, n_squares, UNBIASED: tl.constexpr, WIDE: tl.constexpr):
    """The score from its parts."""
    total = tl.zeros((WIDE,), tl.float32)
    for start in range(0, n_parts, WIDE):
        at = start + tl.arange(0, WIDE)
        total += tl.load(parts_at + at, mask=at < n_parts, other=0)
    if UNBIASED:
        for start in range(0, n_squares, WIDE):
            at = start + tl.arange(0, WIDE)
            total += tl.load(squares_at + at, mask=at < n_squares, other=0) / n / (2 * (n - 1))
    tl.store(score_at, tl.sum(total))


@triton.jit
def _weigh(
    wanted_at, kept_at, vectors_at, weight_at, level_at, out_at, k, factor,
    OF_F: tl.constexpr, JOINT: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """A tile of the matrix that features are multiplied with for the gradient of f (OF_F) or of g."""
    blocks = tl.cdiv(k, TILE)
    row = (tl.program_id(0) // blocks) * TILE + tl.arange(0, TILE)[:, None]
    column = (tl.program_id(0) % blocks) * TILE + tl.arange(0, TILE)[None, :]
    there = (row < k) & (column < k)
    low = tl.minimum(row, column)
    high = tl.maximum(row, column)
    if OF_F:  # by the Gram matrix of g, which is kept below the diagonal
        gram = tl.load(kept_at + high * k + low, mask=there, other=0).to(tl.float32)
        gram = tl.where(row == column, tl.load(vectors_at + 2 * k + low, mask=there, other=0), gram)
    else:
        gram = tl.load(kept_at + low * k + high, mask=there, other=0).to(tl.float32)
    if JOINT:
        weight = tl.load(weight_at + high, mask=there, other=0)
    else:
        own = tl.load(weight_at + k + column, mask=there, other=0)
        is_known = tl.load(level_at + row, mask=there, other=0) <= tl.load(level_at + column, mask=there, other=0)
        weight = tl.where(is_known, own, 0.0)
    value = -factor * tl.load(wanted_at) * weight * gram
    tl.store(out_at + row * k + column, value.to(out_at.dtype.element_ty), mask=there)


@triton.jit
def _latest(value, is_end, later, later_is_end):
    """Of two neighbours in a scan, the value of the later one where that is an end."""
    return tl.where(later_is_end != 0, later, value), is_end | later_is_end


@triton.jit
def _begin(
    wanted_at, f_at, g_at, vectors_at, weight_at, df_at, dg_at, n, k, factor, diagonal,
    ROWS: tl.constexpr, WIDE: tl.constexpr, UNBIASED: tl.constexpr, JOINT: tl.constexpr,
):  # fmt: skip
    """Gradients of some rows, but for their product with a Gram matrix."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, WIDE)[None, :]
    there = column < k
    known = (row < n) & there
    at = row.to(tl.int64) * k + column
    f = tl.load(f_at + at, mask=known, other=0).to(tl.float32)
    g = tl.load(g_at + at, mask=known, other=0).to(tl.float32)
    f_mean = tl.load(vectors_at + column, mask=there, other=0)
    g_mean = tl.load(vectors_at + k + column, mask=there, other=0)
    wanted = tl.load(wanted_at)
    if JOINT:
        weight = wanted * factor * tl.load(weight_at + column, mask=there, other=0)
    else:
        weight = wanted * factor * tl.load(weight_at + k + column, mask=there, other=0)
    df = weight * (g - g_mean)
    dg = weight * (f - f_mean)
    if UNBIASED:
        end = tl.load(weight_at + 2 * k + column, mask=there, other=0)
        ahead = end * tl.cumsum(f * g, 1)
        if JOINT:  # from here on: all but what came before, as scans backwards take longer
            ahead = tl.sum(ahead, 1)[:, None] - tl.cumsum(ahead, 1) + ahead
        else:
            is_end = tl.broadcast_to((end != 0).to(tl.int32), (ROWS, WIDE))
            ahead, _ = tl.associative_scan((ahead, is_end), 1, _latest, reverse=True)
        df += wanted * diagonal * g * ahead
        dg += wanted * diagonal * f * ahead
    tl.store(df_at + at, df.to(df_at.dtype.element_ty), mask=known)
    tl.store(dg_at + at, dg.to(dg_at.dtype.element_ty), mask=known)


def serves(f: torch.Tensor, g: torch.Tensor) -> bool:
    """Whether these features have a dtype and a width that the kernels take."""
    return f.dtype == g.dtype and f.dtype in DTYPES and f.shape[1] <= WIDEST


class How(NamedTuple):
    """Which score.

    Attributes:
        weights: For each dimension the weight of all levels that have it, that of the level that adds it, and the same
            for the last one that a level adds, 0 for others, (3, k).
        level_of: Index of the level that adds each dimension, (k,).
        unbiased: Which estimate.
        is_joint: Whether all levels send gradients to a dimension, or only the one that adds it.
    """

    weights: torch.Tensor
    level_of: torch.Tensor
    unbiased: bool
    is_joint: bool


class FusedScore(torch.autograd.Function):
    """The nested H-score as a differentiable function of f and g."""

    @staticmethod
    def forward(ctx: Any, f: torch.Tensor, g: torch.Tensor, how: How, plain: Score) -> torch.Tensor:
        """The score.

        Args:
            ctx: What gradients need.
            f: Features of x, (n, k), contiguous.
            g: Features of y, (n, k), contiguous.
            how: Which score.
            plain: The same one, differentiable any number of times.
        """
        score, *kept = _forward(f, g, how)
        ctx.save_for_backward(f, g, *kept)
        ctx.how, ctx.plain = how, plain
        return score

    @staticmethod
    def backward(ctx: Any, wanted: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of f and g."""
        if not torch.is_grad_enabled():
            return *_backward(wanted, ctx.saved_tensors, ctx.how), None, None
        sides = ctx.saved_tensors[:2]
        varied = [z for z in sides if z.requires_grad]
        slopes = iter(torch.autograd.grad(ctx.plain(*sides), varied, wanted, create_graph=True))
        df, dg = (next(slopes) if z.requires_grad else None for z in sides)
        return df, dg, None, None


def _forward(f: torch.Tensor, g: torch.Tensor, how: How) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The score, both Gram matrices in one, and (3, k): means of f and of g, and the diagonal of g's Gram matrix."""
    (n, k), device, (weights, _, unbiased, _) = f.shape, f.device, how
    rows, wide = _tile(n, k, SUM_ELEMENTS)
    programs = min(triton.cdiv(n, rows), PROGRAMS * torch.cuda.get_device_properties(device).multi_processor_count)
    blocks = triton.cdiv(k, TILE)
    n_parts = blocks + blocks * blocks
    sums = torch.empty(programs, 3, k, device=device)
    squares, parts, score = (torch.empty(size, device=device) for size in (programs, n_parts, ()))
    kept = torch.empty(k, k, device=device, dtype=torch.bfloat16 if f.dtype == torch.bfloat16 else torch.float32)
    vectors = torch.empty(3, k, device=device)
    factor = n / (n - 1) if unbiased else 1.0
    with torch.cuda.device(device):
        warps = 2 * f.element_size()  # as many bytes each
        _sums[(programs,)](f, g, weights[2], sums, squares, n, k, rows, wide, unbiased, num_warps=warps)
        grams = (_gram(f), _gram(g))
        _join[(n_parts,)](f, g, *grams, weights, sums, kept, vectors, parts, n, k, programs, factor, TILE)
        _add[(1,)](parts, squares, score, n, n_parts, programs, unbiased, 1024)
    return score, kept, vectors


def _backward(wanted: torch.Tensor, saved: tuple[torch.Tensor, ...], how: How) -> tuple[torch.Tensor, torch.Tensor]:
    (f, g, kept, vectors), (weights, level_of, unbiased, is_joint) = saved, how
    n, k = f.shape
    rows, wide = _tile(n, k, ELEMENTS)
    df, dg = torch.empty_like(f), torch.empty_like(g)
    factor, diagonal = (1 / (n - 1), 1 / n / (n - 1)) if unbiased else (1 / n, 0.0)
    with torch.cuda.device(f.device):
        _begin[(triton.cdiv(n, rows),)](
            wanted, f, g, vectors, weights, df, dg, n, k, factor, diagonal, rows, wide, unbiased, is_joint
        )
        matrix = torch.empty(k, k, device=f.device, dtype=f.dtype)
        for gradient, features, of_f in ((df, f, True), (dg, g, False)):
            tiles = (triton.cdiv(k, TILE) ** 2,)
            _weigh[tiles](wanted, kept, vectors, weights, level_of, matrix, k, factor, of_f, is_joint, TILE)
            gradient.addmm_(features, matrix)
    return df, dg


def _gram(z: torch.Tensor) -> torch.Tensor:
    """Z^T z, summed and kept in float32."""
    return z.T @ z if z.dtype == torch.float32 else torch.mm(z.T, z, out_dtype=torch.float32)


def _tile(n: int, k: int, elements: int) -> tuple[int, int]:
    """Rows and columns of a tile of so many elements: whole rows, and few of them where there are few."""
    wide = max(16, triton.next_power_of_2(k))
    return max(1, min(elements // wide, triton.next_power_of_2(n // 256))), wide
