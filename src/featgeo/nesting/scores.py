r"""The H-score and its nested form, in one weighted pass.

The H-score of features f(X), g(Y) of dimension k (Definition H) is the energy of dependence that f (x) g captures,

    H(f, g) = 1/2 (||i||^2 - ||i - f (x) g||^2) = E[f.g] - E[f].E[g] - 1/2 tr(La_f La_g),     La_f = E[f f^T],

and a nested H-score is the weighted sum of the H-scores of the first k_1, ..., k_l dimensions. With W from
`Nesting.pair_weights` that sum is

    sum_a W_aa cov(f_a, g_a) - 1/2 sum_ab W_ab (La_f)_ab (La_g)_ab.

*Unbiased*: tr(La_f La_g) = E[(f(X).g(Y'))^2] for independent X, Y'. The plug-in estimate averages over all pairs (i, j)
of rows; pairs i = j are not independent and bias it. The unbiased one leaves them out and divides the covariance by
n - 1. With u = f * g, the pairs i = j contribute the squared cumulative sums of u at the ends of the levels.

*Sequential*: the same value, but level i sends gradients only to its own dimensions; earlier ones count as fixed.

*Over ranks*: all of it reads means, second moments and the pairs i = j of all rows, so ranks add up these k-vectors and
k x k blocks in one collective, and each then has the gradients of its own rows without another.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from types import ModuleType
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch.autograd.function import once_differentiable

from featgeo.geometry.moments import Moments
from featgeo.geometry.spans import COLLINEAR, CONSTANT_SPREAD
from featgeo.geometry.validation import Array, check_choice, check_flag, check_tensor
from featgeo.nesting.nesting import Nesting
from featgeo.ranks import ALONE, Ranks

Mode = Literal["joint", "sequential"]


def h_score(f: torch.Tensor, g: torch.Tensor, unbiased: bool = False, over_ranks: bool = False) -> torch.Tensor:
    """H-score of feature values on a sample.

    Args:
        f: Features of x, (n, k), any floating dtype and device; half precision is accumulated in float32.
        g: Features of y on the same rows, (n, k).
        unbiased: Estimate the population H-score without bias, instead of computing that of the empirical distribution.
        over_ranks: As in `nested_h_score`.

    Returns:
        A differentiable scalar tensor.
    """
    _check_features(f, g, unbiased, over_ranks)
    return _score(f, g, _OneLevel((f.shape[1],)), _How(unbiased, ranks=_ranks(over_ranks)))


def nested_h_score(
    f: torch.Tensor,
    g: torch.Tensor,
    nesting: Nesting,
    unbiased: bool = False,
    mode: Mode = "joint",
    over_ranks: bool = False,
) -> torch.Tensor:
    """Nested H-score of feature values on a sample, O(n k^2) for any number of levels.

    Args:
        f: Features of x, (n, k), dimensions in level order.
        g: Features of y on the same rows, (n, k).
        nesting: The levels; their dimensions add up to k.
        unbiased: As in `h_score`.
        mode: "joint" maximises all levels together; "sequential" stops the gradient of each level at the dimensions of
            the levels before it. Both have the same value.
        over_ranks: Score the rows of all processes of `torch.distributed` together, of which f and g hold those of this
            one, however many; all processes must call it. All get the same score. Added up over them (not averaged)
            gradients of parameters are those of all rows.

    Returns:
        A differentiable scalar tensor; over several ranks it can be differentiated once.

    Raises:
        ValueError: For shapes that do not fit, too few rows, or (on the CPU) a score that is not finite.
    """
    _check_features(f, g, unbiased, over_ranks)
    _checked(nesting)
    if f.shape[1] != nesting.k:
        raise ValueError(
            f"The nesting has {' + '.join(map(str, nesting.dims))} = {nesting.k} dimensions but the features have "
            f"{f.shape[1]}. Make them agree."
        )
    check_choice(mode, "mode", ("joint", "sequential"), "Leave it out for 'joint'.")
    return _score(f, g, nesting, _How(unbiased, mode == "joint", _ranks(over_ranks)))


class _OneLevel(NamedTuple):
    """What scores read of a nesting, for a plain H-score: no compiler follows how a `Nesting` is made."""

    dims: tuple[int]
    weights: tuple[float] = (1.0,)


class _How(NamedTuple):
    """What is estimated, where gradients go, and who has the rows."""

    unbiased: bool
    is_joint: bool = True
    ranks: Ranks = ALONE


def _ranks(over_ranks: bool) -> Ranks:
    return Ranks.there() if over_ranks else ALONE


def _score(f: torch.Tensor, g: torch.Tensor, levels: Nesting | _OneLevel, how: _How) -> torch.Tensor:
    """The score of checked features."""

    def score(f: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        return _plain_score(f, g, levels, how)

    is_alone = how.ranks.size == 1
    fused = _kernels() if f.is_cuda and is_alone and not torch.compiler.is_compiling() else None
    with _full_precision(f.device):
        if fused is not None and fused.serves(f, g) and _has_memory(f) and _has_memory(g):
            way = fused.How(*_vectors(levels, f.device), how.unbiased, how.is_joint)
            return fused.FusedScore.apply(f.contiguous(), g.contiguous(), way, score)
        return _finite(score(f, g))


def _plain_score(f: torch.Tensor, g: torch.Tensor, levels: Nesting | _OneLevel, how: _How) -> torch.Tensor:
    """The same by operations of torch: on any device, and under any of its transformations."""
    precision = torch.promote_types(torch.promote_types(f.dtype, g.dtype), torch.float32)
    f, g = f.to(precision), g.to(precision)
    pair, level, owned = _weights(levels, precision, f.device)
    back, alike, n = None if how.is_joint else owned, f.new_zeros(()), len(f)
    if how.unbiased:  # what pairs of a row with itself contribute
        sums = _level_sums(f * g, levels.dims)
        sums = sums.cumsum(dim=1) if how.is_joint else sums + (sums.cumsum(dim=1) - sums).detach()
        alike = (level * sums.square().sum(dim=0)).sum()
    if how.ranks.size == 1:
        covariance, quadratic, *_ = _Sums.apply(f, g, pair, back)  # type: ignore[no-untyped-call]
    else:
        shared = _SharedSums.apply(f, g, alike, (pair, back), how.ranks)  # type: ignore[no-untyped-call]
        covariance, quadratic, alike, n = shared
        if n.device.type == "cpu" and n <= int(how.unbiased):
            raise ValueError(
                f"At least {1 + int(how.unbiased)} rows are needed, and all ranks together have {int(n)}. Use larger "
                "batches."
            )
    if how.unbiased:
        quadratic, covariance = (n * quadratic - alike / n) / (n - 1), covariance * n / (n - 1)
    return covariance - quadratic / 2


def _checked(nesting: Nesting) -> Nesting:
    if not isinstance(nesting, Nesting):
        raise ValueError(f"`nesting` must be a Nesting, got {str(nesting)[:80]}. Write Nesting([1, 1]).")
    return nesting


class _Sums(torch.autograd.Function):
    """sum_a W_aa cov(f_a, g_a) and sum_ab W_ab (La_f)_ab (La_g)_ab, with their gradients by one product a side.

    Of a symmetric matrix f^T f autograd would take the gradient twice, once for each factor. Gradients may have weights
    of their own: where row a of these holds that of the level which adds a, and 0 for later dimensions, each dimension
    gets the gradient of its own level alone.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(
        f: torch.Tensor, g: torch.Tensor, pair: torch.Tensor, back: torch.Tensor | None
    ) -> tuple[torch.Tensor, ...]:
        """The sums; and the second moments of f and of g, for the gradients."""
        n, (f_gram, g_gram) = len(f), (f.T @ f / len(f), g.T @ g / len(g))
        covariance = ((f - f.mean(dim=0)) * g).sum(dim=0) / n
        return (pair.diagonal() * covariance).sum(), (pair * f_gram * g_gram).sum(), f_gram, g_gram

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """What gradients need."""
        f, g, pair, back = inputs
        ctx.save_for_backward(f, g, pair if back is None else back, *output[2:])
        ctx.mark_non_differentiable(*output[2:])

    @staticmethod
    def backward(ctx: Any, of_covariance: torch.Tensor, of_quadratic: torch.Tensor, *_: Any) -> tuple[Any, ...]:
        """Gradients of both sums; differentiable themselves, by second moments that are formed again."""
        f, g, back, f_gram, g_gram = ctx.saved_tensors
        n = len(f)
        if torch.is_grad_enabled():
            f_gram, g_gram = f.T @ f / n, g.T @ g / n
        scale, weight = of_covariance * back.diagonal() / n, (2 / n) * of_quadratic * back
        of_f = _gradient(f, g, g.mean(dim=0), scale, weight * g_gram)
        return of_f, _gradient(g, f, f.mean(dim=0), scale, weight * f_gram), None, None


def _gradient(
    own: torch.Tensor, other: torch.Tensor, mean: torch.Tensor, scale: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    """Of both sums, in the features of one side: by those of the other less their mean, and by second moments."""
    return torch.addmm(scale * (other - mean), own, weights.T)


class _SharedSums(torch.autograd.Function):
    """The same of the rows of all ranks; what their pairs of a row with itself contribute; and how many there are.

    Ranks add up float64 numbers, so that no covariance is lost beside large means. Of both Gram matrices, which are
    symmetric, one k x k matrix is told, f's above its diagonal and g's below.
    """

    @staticmethod
    def forward(
        ctx: Any,
        f: torch.Tensor,
        g: torch.Tensor,
        alike: torch.Tensor,
        weights: tuple[torch.Tensor, torch.Tensor | None],
        ranks: Ranks,
    ) -> tuple[torch.Tensor, ...]:
        """Both sums, the contribution and the number of rows."""
        (pair, back), k = weights, f.shape[1]
        f_sum, g_sum = (z.sum(dim=0, dtype=torch.float64) for z in (f, g))
        mean = (f_sum / max(len(f), 1)).to(f.dtype)
        cross = ((f - mean) * g).sum(dim=0, dtype=torch.float64) + mean * g_sum
        f_gram, g_gram = f.T @ f, g.T @ g
        several = f_sum.new_tensor([len(f), 0.0])
        several[1] = alike
        told = torch.cat([several, f_sum, g_sum, cross, g_gram.diagonal(), (f_gram.triu() + g_gram.tril(-1)).ravel()])
        n, alike, f_mean, g_mean, cross, diagonal, grams = torch.split(ranks.add(told), [1, 1, k, k, k, k, k * k])
        f_mean, g_mean, grams = f_mean / n, g_mean / n, grams.view(k, k)
        f_gram = (grams.triu() + grams.triu(1).T) / n
        g_gram = (grams.tril(-1) + grams.tril(-1).T + diagonal.diag()) / n
        covariance = (pair.diagonal() * (cross / n - f_mean * g_mean)).sum()
        seen = (z.to(f.dtype) for z in (f_gram, g_gram, f_mean, g_mean, n[0]))
        ctx.save_for_backward(f, g, pair if back is None else back, *seen)
        sums = covariance, (pair * f_gram * g_gram).sum(), alike[0], n[0]
        *some, rows = (part.to(f.dtype) for part in sums)
        ctx.mark_non_differentiable(rows)
        return *some, rows

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, of_covariance: torch.Tensor, of_quadratic: torch.Tensor, of_alike: torch.Tensor, _: Any
    ) -> tuple[Any, ...]:
        """Gradients of all three in the rows of this rank."""
        f, g, back, f_gram, g_gram, f_mean, g_mean, n = ctx.saved_tensors
        scale, weight = of_covariance * back.diagonal() / n, (2 / n) * of_quadratic * back
        of_f, of_g = _gradient(f, g, g_mean, scale, weight * g_gram), _gradient(g, f, f_mean, scale, weight * f_gram)
        return of_f, of_g, of_alike, None, None


def dimension_weights(nesting: Nesting, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Total weight of the levels that have each dimension, (k,): made once for a device, and kept."""
    return _kept_weights(nesting, dtype, device)[0].diagonal()


def single_sided_h_score(f: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Single-sided H-score: the best H-score that f can reach, max_g H(f, g), over all functions g in a span.

    It is half the energy of the part of the dependence aligned with f (section 4.4 of the paper), computed as
    1/2 tr(cov(f)^+ cov(f, g) cov(g)^+ cov(g, f)).

    Args:
        f: Features of x, (n, k).
        y: Labels of whole numbers, (n,), for all functions of the label; or features (n, m) that span the functions
            allowed.

    Returns:
        A scalar tensor, differentiable in f wherever the rank of cov(f) does not change.
    """
    if isinstance(y, torch.Tensor) and y.ndim == 1 and len(y):
        if y.is_floating_point() or y.is_complex():
            raise ValueError(
                f"`y` of shape (n,) must hold whole-number labels, got {y.dtype}. Pass y[:, None] to use it as feature."
            )
        y = torch.nn.functional.one_hot(torch.unique(y, return_inverse=True)[1]).float()
    _check_rows(f, y, 2)
    # Small matrices decide about ranks here, so they are formed in float64, of features scaled to unit variance.
    precision = torch.float32 if f.device.type == "mps" else torch.float64
    with _full_precision(f.device):
        f_unit, y_unit = (_standardised(z.to(precision)) for z in (f, y))
        _finite(f_unit.sum() + y_unit.sum())
        inverse_f, inverse_y = (torch.linalg.pinv(z.T @ z, rtol=COLLINEAR, hermitian=True) for z in (f_unit, y_unit))
        cross = f_unit.T @ y_unit
        return torch.trace(inverse_f @ cross @ inverse_y @ cross.T) / 2


def h_score_of_modes(f: Array, g: Array, sigma: Array) -> float:
    """H-score of given modes on rows, f and g, (n, k) each, carrying sqrt(sigma): 0 of no modes."""
    if f.shape[1] == 0:
        return 0.0
    scale = np.sqrt(sigma)
    return float(h_score(torch.from_numpy(f * scale), torch.from_numpy(g * scale)))


def moments_h_score(moments: Moments, nesting: Nesting | None = None, f: str = "f", g: str = "g") -> float:
    """The plug-in (nested) H-score read from moments: no rows needed.

    Args:
        moments: Moments that hold the blocks f and g; each moment is taken from the rows that have it.
        nesting: The levels; a single one when None.
        f: Name of the block of features of x.
        g: Name of the block of features of y, of the same dimension.
    """
    if not isinstance(moments, Moments):
        raise ValueError(f"`moments` must be Moments, got {type(moments).__name__}. Use Moments.from_features.")
    moments.weight(f, g)  # says which blocks there are, where these are not among them
    nesting = Nesting([moments.dims[f]]) if nesting is None else _checked(nesting)
    if not moments.dims[f] == moments.dims[g] == nesting.k:
        raise ValueError(
            f"The nesting has {nesting.k} dimensions, {f!r} has {moments.dims[f]} and {g!r} has {moments.dims[g]}. "
            "Make the three agree."
        )
    weights = nesting.pair_weights
    quadratic = np.sum(weights * moments.second_moment(f) * moments.second_moment(g))
    return float(np.diag(weights) @ np.diag(moments.covariance(f, g)) - quadratic / 2)


def _weights(*how: Any) -> tuple[torch.Tensor, ...]:
    """Those of `_new_weights`: compilers follow how they are made, else they are kept."""
    return (_new_weights if torch.compiler.is_compiling() else _kept_weights)(*how)


def _new_weights(levels: Nesting | _OneLevel, dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor, ...]:
    """W, (k, k); the weight of each level, (l,); and for a, b that of the level that adds a, 0 where b comes later."""
    with torch.inference_mode(False):  # they are kept, and may be met first in validation, then in training
        level = torch.tensor(levels.weights, dtype=torch.float64)
        first, second = _level_of(levels)[:, None], _level_of(levels)
        pair = level.flip(0).cumsum(0).flip(0)[torch.maximum(first, second)]
        owned = torch.where(first >= second, level[first], 0.0)
        return tuple(w.to(device, dtype) for w in (pair, level, owned))


_kept_weights = lru_cache(maxsize=32)(_new_weights)


def _level_of(levels: Nesting | _OneLevel) -> torch.Tensor:
    """Index of the level that adds each dimension, (k,)."""
    return torch.tensor([i for i, dim in enumerate(levels.dims) for _ in range(dim)])


@lru_cache(maxsize=32)
def _vectors(levels: Nesting | _OneLevel, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """What `FusedScore` takes for weights and levels."""
    pair, _, owned = _new_weights(levels, torch.float32, torch.device("cpu"))
    with torch.inference_mode(False):
        level_of = _level_of(levels).int()
        is_last = level_of.diff(append=level_of[-1:] + 1) > 0
        own = owned.diagonal()
        return torch.stack([pair.diagonal(), own, own * is_last]).to(device), level_of.to(device)


@lru_cache(maxsize=1)
def _kernels() -> ModuleType | None:
    """Those for CUDA devices, where Triton is: torch brings it along where it has such devices."""
    try:
        from featgeo.nesting import fused
    except ImportError:
        return None
    return fused


def _full_precision(device: torch.device) -> AbstractContextManager[object]:
    """No autocast: it would form the sums in half precision after all."""
    if torch.compiler.is_compiling() or torch.amp.is_autocast_available(device.type):  # compilers cannot ask
        return torch.autocast(device.type, enabled=False)
    return nullcontext()


def _finite(score: torch.Tensor) -> torch.Tensor:
    """The score, checked on the CPU. Reading it would stall an accelerator; there a NaN shows in the result."""
    can_be_read = score.device.type == "cpu" and not torch.compiler.is_compiling() and _has_memory(score)
    if can_be_read and not torch.isfinite(score.detach()):
        raise ValueError(
            "The H-score is not finite: the features hold NaN, infinite or far too large values. Scale them."
        )
    return score


def _has_memory(z: torch.Tensor) -> bool:
    """Whether a tensor is more than the stand-in that the transformations of torch.func compute with."""
    try:
        z.data_ptr()
    except RuntimeError:
        return False
    return True


def _standardised(z: torch.Tensor) -> torch.Tensor:
    """Columns of mean 0 and unit norm; a constant column becomes 0."""
    centred = z - z.mean(dim=0)
    norm = centred.norm(dim=0)
    constant = norm <= CONSTANT_SPREAD * z.abs().amax(dim=0) * len(z) ** 0.5
    return torch.where(constant, 0, centred / torch.where(constant, 1, norm))


def _level_sums(product: torch.Tensor, dims: tuple[int, ...]) -> torch.Tensor:
    """Sums of the dimensions that each level adds, (n, k) -> (n, l)."""
    if len(dims) == product.shape[1]:
        return product
    return torch.stack([part.sum(dim=1) for part in torch.split(product, list(dims), dim=1)], dim=1)


def _check_features(f: torch.Tensor, g: torch.Tensor, unbiased: bool, over_ranks: bool) -> None:
    fewest = 2 if check_flag(unbiased, "unbiased") else 1
    _check_rows(f, g, 0 if check_flag(over_ranks, "over_ranks") else fewest)
    if f.shape != g.shape or f.shape[1] == 0:
        raise ValueError(
            f"f and g must have the same shape (n, k) with k >= 1, got {tuple(f.shape)} and {tuple(g.shape)}. "
            "Give each feature of x its partner of y."
        )


def _check_rows(f: torch.Tensor, g: torch.Tensor, at_least: int) -> None:
    for features in (f, g):
        if not isinstance(features, torch.Tensor):
            raise ValueError(f"Features must be torch tensors, got {type(features)}. Use torch.as_tensor(features).")
        check_tensor(features, "A tensor of features", with_values=False)
    if f.ndim == g.ndim == 2 and len(f) != len(g):
        raise ValueError(
            f"f and g must have one row a sample, the same samples, got {len(f)} and {len(g)} rows. Align them."
        )
    if f.ndim != 2 or g.ndim != 2:
        raise ValueError(
            f"Features must be matrices with one row a sample, got shapes {tuple(f.shape)} and {tuple(g.shape)}. "
            "Use z[:, None] for a single feature."
        )
    if len(f) < at_least:
        raise ValueError(f"At least {at_least} rows are needed, got {len(f)}. Use larger batches.")
    if f.device != g.device:
        raise ValueError(f"f and g must be on one device, got {f.device} and {g.device}. Move one of them with .to().")
    for features in (f, g):
        if not features.is_floating_point():
            raise ValueError(f"Features must be floating point, got {features.dtype}. Convert them with .float().")
