"""The predictor's draws are the profile's, its arrays are checked, and it compiles once for a size."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from bayesperf.errors import InputError, TableError, UnconvergedError, UnknownNameError
from bayesperf.inference.diagnostics import Check
from bayesperf.inference.infer import Inference
from bayesperf.inference.sampling import sample_prior
from bayesperf.models.roofline import Roofline
from bayesperf.prediction.profile import Profile
from tests.exact import PRIOR, World, exact_profile
from tests.tables import products_table, roofline_table

WORK = {"flops": 2.0 * 768**3, "bytes": 12.0 * 768**2}


@pytest.fixture(scope="module")
def profile() -> Profile:
    """A roofline whose posterior is its prior: what is tested costs the same, and nothing is sampled."""
    table, model = roofline_table(1, targets=("box", "bax")), Roofline()
    encoded = model.encode(table, None)
    tree = sample_prior(model.build(encoded), draws=1500, seed=3)
    tree["posterior"] = tree["prior"].copy()
    check = Check("R-hat", 1.0, 1.01, True)
    return Profile(Inference(tree, model, encoded, table, None, [check], {}))


def test_draws_of_both_are_of_one_distribution(profile: Profile) -> None:
    fast = profile.predictor("box")
    plain = profile.predict([{"op": "matmul", "dtype": "float32", **WORK}], "box", seed=1).draws.values[:, 0]
    assert scipy.stats.ks_2samp(fast.draws("matmul", "float32", **WORK)[:, 0], plain).pvalue > 0.001
    assert fast.notes == ("campaign spread assumed, one campaign seen",)


def test_quantiles_are_those_of_the_draws(profile: Profile) -> None:
    fast = profile.predictor("box", quantiles=(0.1, 0.9), draws=300)
    sizes = {"flops": np.geomspace(1e6, 1e12, 5), "bytes": 1e6}
    found = fast("matmul", "float32", **sizes)
    assert found.shape == (5, 2)
    draws = fast.draws("matmul", "float32", **sizes)
    assert draws.shape == (300, 5)
    np.testing.assert_allclose(found, np.quantile(draws, [0.1, 0.9], axis=0).T, rtol=1e-6)
    assert (np.diff(found[:, 0]) > 0).all()


def test_what_workloads_share_is_kept_across_calls(profile: Profile) -> None:
    fast = profile.predictor("box")
    one, same = fast.draws("matmul", "float32", **WORK), fast.draws("matmul", "float32", **WORK)
    np.testing.assert_array_equal(one, same)
    longer = fast.draws("matmul", "float32", flops=2 * WORK["flops"], bytes=WORK["bytes"])
    assert np.corrcoef(np.log(one[:, 0]), np.log(longer[:, 0]))[0, 1] > 0.9


def test_many_workloads_are_the_same_as_one_by_one(profile: Profile) -> None:
    fast = profile.predictor("box", draws=20)
    flops = np.geomspace(1e5, 1e12, 5000)
    whole = fast.draws("matmul", "float32", flops=flops, bytes=1e6)
    assert whole.shape == (20, 5000)
    some = fast.draws("matmul", "float32", flops=flops[:7], bytes=1e6)
    np.testing.assert_allclose(whole[:, :7], some, rtol=1e-5)


def test_a_size_is_compiled_once(profile: Profile) -> None:
    fast = profile.predictor("box", draws=20)
    for n in (1, 1, 3, 4, 3):
        fast("stream_triad", "float32", flops=np.full(n, 1e6), bytes=8e6)
    (kind,) = fast._kinds.values()
    assert kind.times._cache_size() == 2


@pytest.mark.slow
def test_what_rows_share_is_not_repeated_for_each() -> None:
    """A cell's 24 coefficients, gathered for every row and draw, took 100 times as long from 4,000 workloads."""
    model, table = Roofline(), products_table(1, targets=("a",), shapes=100)
    encoded = model.encode(table, None)
    tree = sample_prior(model.build(encoded), draws=100, seed=3)
    tree["posterior"] = tree["prior"].copy()
    fast = Profile(Inference(tree, model, encoded, table, None, [Check("R-hat", 1.0, 1.01, True)], {})).predictor()
    flops = np.geomspace(1e6, 1e12, 1024)
    assert fast.draws("matmul", "float32", flops=flops, bytes=1e6, m=64.0, n=64.0, k=64.0).shape == (100, 1024)
    (kind,) = fast._kinds.values()
    assert kind.prepared.parameters["discrepancy"].shape[-1] >= 20
    coded = kind.prepared.code({"flops": flops, "bytes": np.full(1024, 1e6)})
    memory = kind.times.lower(*kind.given, coded).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 12 * 4 * 100 * 1024


def test_bad_workloads_name_the_column(profile: Profile) -> None:
    fast = profile.predictor("box", draws=20)
    with pytest.raises(TableError, match="bytes"):
        fast("matmul", "float32", flops=1e9)
    for sizes in ({"flops": np.nan}, {"flops": -1.0}, {"bytes": np.inf}, {"m": [-1.0]}, {"n": [1.0, 2.0, 3.0]}):
        with pytest.raises(TableError, match=next(iter(sizes))):
            fast("matmul", "float32", **{**WORK, "k": [1.0, 2.0], **sizes})
    with pytest.raises(TableError, match="no workloads"):
        fast("matmul", "float32", flops=[], bytes=[])
    with pytest.raises(TableError, match="column flops: numbers are needed"):
        fast("matmul", "float32", flops=["many"], bytes=1e6)
    with pytest.raises(TableError, match="column flops: numbers are needed"):
        fast("matmul", "float32", flops="2 GFLOP", bytes=1e6)
    # Single precision would make an infinite or no number of it, in silence.
    with pytest.raises(TableError, match=r"column bytes: a number from 0 to 1e\+30"):
        fast("matmul", "float32", flops=1e9, bytes=1e300)
    assert np.isfinite(fast("matmul", "float32", flops=1e30, bytes=1e30)).all()
    # It was prepared for one target: another one would be ignored in silence.
    with pytest.raises(UnknownNameError, match="working_set_bytes"):
        fast("matmul", "float32", **WORK, working_set=1e6)
    with pytest.raises(TableError, match="op and dtype are text"):
        fast(["matmul"], "float32", **WORK)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"Profile\.predictor\(target="):
        fast("matmul", "float32", **WORK, target="bax")


def test_bad_predictors_are_refused(profile: Profile) -> None:
    with pytest.raises(InputError, match="which target"):
        profile.predictor()
    with pytest.raises(UnknownNameError, match="box"):
        profile.predictor("bex")("matmul", "float32", **WORK)
    with pytest.raises(UnknownNameError, match="no option named 'quantile'; there are: quantiles"):
        profile.predictor("box", quantile=0.5)  # type: ignore[call-arg]
    for quantiles in ((2.0,), "half", [0.5, None]):
        with pytest.raises(InputError, match="quantiles are numbers"):
            profile.predictor("box", quantiles=quantiles)  # type: ignore[arg-type]
    for options in ({"draws": 0}, {"seed": -1}, {"mean": True, "campaign": "monday"}):
        with pytest.raises(InputError):
            profile.predictor("box", **options)


def test_a_model_without_a_prepared_form_says_so() -> None:
    world = World()
    table = world.measure(np.random.default_rng(1), {"gpu": PRIOR[0]}, campaigns=["monday"])
    with pytest.raises(InputError, match="no prepared form; use predict"):
        exact_profile(world, table, 1).predictor()("copy", flops=0.0, bytes=1e6)
    with pytest.raises(UnconvergedError):
        exact_profile(world, table, 1, passed=False).predictor()


# Any number of workloads.


def test_parts_of_a_table_predict_as_the_whole(profile: Profile) -> None:
    flops = np.geomspace(1e6, 1e12, 25)
    workloads = pd.DataFrame({"op": "matmul", "dtype": "float32", "flops": flops, "bytes": 1e6, "note": range(25)})
    whole = profile.predict_frame(workloads, "box", draws=1000, interval=0.8)
    parts = profile.predict_frame(workloads, "box", draws=1000, interval=0.8, pairs=4000)
    assert list(parts.columns) == list(whole.columns)
    assert parts["note"].tolist() == list(range(25))
    assert parts.attrs["notes"] == whole.attrs["notes"] == ["campaign spread assumed, one campaign seen"]
    np.testing.assert_array_equal(whole["median_s"], profile.predict(workloads, "box").median())
    # The noise of a row is drawn anew, all else is the same.
    np.testing.assert_allclose(parts["median_s"], whole["median_s"], rtol=0.3)
    pd.testing.assert_series_equal(parts["p_compute"], whole["p_compute"])
    with pytest.raises(UnknownNameError, match="no option named 'pair'"):
        profile.predict_frame(workloads, "box", pair=3)  # type: ignore[call-arg]
    with pytest.raises(InputError, match="pairs"):
        profile.predict_frame(workloads, "box", pairs=0)
