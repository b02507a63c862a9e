"""Time slicing and sharing are told apart by complementary aggressors, and never without them."""

from __future__ import annotations

import numpy as np
import pytest
from _contention import KERNELS, Kernel, Target, pairs, table

from bayesperf.models.contention.encode import encode
from bayesperf.models.contention.sharing import sentences, sharing, sharing_of
from bayesperf.models.contention.usl import scalability

FEW = KERNELS[:2]


@pytest.mark.parametrize("turns", [True, False])
def test_verdict_with_complementary_aggressors(turns: bool) -> None:
    (found,) = sharing_of(encode(table(Target("box", turns=turns), list(pairs(FEW)), 1), None))
    assert found.verdict == ("slicing" if turns else "sharing")
    assert found.complementary == 2
    assert "probability" in sentences([found])[0]


@pytest.mark.parametrize("turns", [True, False])
def test_equal_saturating_partners_are_undecided(turns: bool) -> None:
    equal = [(kernel, kernel) for kernel in FEW]
    found = sharing(encode(table(Target("box", turns=turns), equal, 1), None))
    assert found["verdict"].tolist() == ["undecided"]
    assert found["slicing"].tolist() == [0.5]
    (said,) = sentences(sharing_of(encode(table(Target("box", turns=turns), equal, 1), None)))
    assert "measure" in said


def test_equal_partners_say_what_complementary_ones_should_cost() -> None:
    """Sharing that costs a third: by the prior alone it could be either, beside what equal ones lose it could not."""
    kernels = [Kernel("matmul", 1.0, 0.29), Kernel("stream_triad", 0.05, 1.0)]
    target = Target("box", loss=0.18)
    assert 1.3 < target.slowdown(kernels) < 1.5
    (found,) = sharing_of(encode(table(target, list(pairs(kernels)), 1, noise=0.045), None))
    assert found.verdict == "sharing"


@pytest.mark.parametrize(("sigma", "kappa"), [(1.0, 0.0), (0.1, 0.0), (0.5, 0.1)])
def test_the_law_of_equal_processes_is_found_again(sigma: float, kappa: float) -> None:
    class Law(Target):
        def slowdown(self, mix: object) -> float:
            n = len(mix)  # type: ignore[arg-type]
            return 1 + sigma * (n - 1) + kappa * n * (n - 1)

    stream: Kernel = KERNELS[1]
    found = scalability(encode(table(Law("box"), [(stream,) * n for n in range(2, 6)], 1, noise=0.02), None))
    (row,) = found.to_dict("records")
    assert (row["target"], row["op"], row["processes"]) == ("box", "stream_triad", 5)
    assert row["sigma_lower"] - 0.01 <= sigma <= row["sigma_upper"] + 0.01
    assert row["kappa_lower"] - 0.01 <= kappa <= row["kappa_upper"] + 0.01
    assert row["misfit"] < 0.05


def test_one_number_of_processes_has_no_law() -> None:
    assert not len(scalability(encode(table(Target("box"), [FEW, (FEW[0], FEW[0])], 1), None)))
    assert np.isfinite(sharing(encode(table(Target("box"), [FEW], 1), None))["slicing"]).all()
