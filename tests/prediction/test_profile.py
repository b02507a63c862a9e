"""From a table to a profile and back from disk: one real fit, asked everything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import arviz as az
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import bayesperf as bp
from bayesperf.errors import (
    CeilingError,
    InputError,
    TableError,
    UnconvergedError,
    UnknownNameError,
    UnsupportedFileError,
)
from bayesperf.inference.diagnostics import Check
from bayesperf.inference.infer import Inference
from bayesperf.model import LIMITS
from bayesperf.specs import check_targets
from tests.tables import BANDWIDTH, LAUNCH, RATE, roofline_table

WORKLOAD = {"op": "matmul", "dtype": "float32", "flops": 2.0 * 768**3, "bytes": 12.0 * 768**2}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return roofline_table(11, heldout=True)


@pytest.fixture(scope="module")
def profile(table: pd.DataFrame) -> bp.Profile:
    return bp.fit(table, seed=5)


def test_the_gate_passes(profile: bp.Profile) -> None:
    assert profile.converged, [check for check in profile.gate if not check.passed]


def test_parameters_are_recovered_and_cite_their_rows(profile: bp.Profile, table: pd.DataFrame) -> None:
    parameters = profile.parameters().set_index("label")
    for label, truth in (("matmul float32", RATE), ("dispatch, launched", LAUNCH), ("122 MiB working set", BANDWIDTH)):
        row = parameters.loc[label].to_dict()
        assert row["lower"] / 1.1 < truth < row["upper"] * 1.1, label
        assert row["learned"]
        assert set(row["evidence"]) <= set(table.loc[table["role"] == "fit", "measurement_id"])
        assert len(row["evidence"])
    # Every rate here is a plain maximum: nothing in the table tells the corner's sharpness from the prior for long.
    assert parameters["contraction"].between(-1.0, 1.0).all()


def test_held_out_rows_are_not_fitted(profile: bp.Profile) -> None:
    assert len(profile.table) == 36
    assert profile.facts["left_out"]["heldout"] == 24


def test_predictions_have_named_dims_and_cover(profile: bp.Profile, table: pd.DataFrame) -> None:
    heldout = table[table["role"] == "heldout"].reset_index(drop=True)
    prediction = profile.predict(heldout, campaign="monday")
    assert prediction.draws.dims == ("draw", "workload")
    assert prediction.interval(0.9).dims == ("bound", "workload")
    assert prediction.quantile([0.1, 0.9]).dims == ("quantile", "workload")
    lower, upper = prediction.interval(0.99).values
    assert ((heldout["time_s"] > lower) & (heldout["time_s"] < upper)).all()
    np.testing.assert_allclose(prediction.cdf(prediction.median()).values, 0.5, atol=0.01)
    np.testing.assert_allclose(prediction.limits.sum("limit"), 1.0)
    assert prediction.supported.all()


def test_limits_name_what_bounds(profile: bp.Profile) -> None:
    workloads = pd.DataFrame(
        {
            "op": ["matmul", "stream_copy", "dispatch"],
            "dtype": "float32",
            "flops": [2.0 * 2048**3, 0.0, 0.0],
            "bytes": [12.0 * 2048**2, 1e8, 0.0],
        }
    )
    limits = profile.predict(workloads).limits
    assert [LIMITS[i] for i in limits.values.argmax(axis=1)] == ["compute", "memory", "overhead"]


def test_frame_keeps_own_columns_first(profile: bp.Profile) -> None:
    frame = profile.predict({"note": "mine", **WORKLOAD}).to_frame(0.8)
    assert list(frame.columns[:5]) == ["note", "op", "dtype", "flops", "bytes"]
    assert (
        list(frame.columns[-11:])
        == [
            *("median_s", "lower_s", "upper_s", "interval"),
            *(f"p_{name}" for name in LIMITS),
            *("supported", "support_distance"),
            "unsupported_features",
        ][-11:]
    )
    assert frame["interval"].eq(0.8).all()


def test_a_fresh_campaign_is_wider_than_the_measured_one(profile: bp.Profile) -> None:
    def width(**options: str | bool) -> float:
        lower, upper = profile.predict(WORKLOAD, draws=4000, **options).interval(0.9).values  # type: ignore[arg-type]
        return float(np.log(upper / lower)[0])

    assert width(campaign="monday") < width(mean=True) < width() < width(stack="another")


def test_the_same_seed_gives_the_same_draws(profile: bp.Profile) -> None:
    one, two, other = (profile.predict(WORKLOAD, seed=seed).draws.values for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert (one != other).any()


# Few rows have influential ones; that ArviZ says so is what the file is for.
@pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto distribution")
def test_round_trip(profile: bp.Profile, tmp_path: Path) -> None:
    path = tmp_path / "profile.nc"
    profile.save(path)
    loaded = bp.load_profile(path)
    np.testing.assert_array_equal(loaded.predict(WORKLOAD).draws, profile.predict(WORKLOAD).draws)
    pd.testing.assert_frame_equal(loaded.parameters(), profile.parameters())
    assert loaded.facts == profile.facts
    assert loaded.gate == profile.gate
    opened = xr.open_datatree(path, engine="h5netcdf")
    assert {"posterior", "sample_stats", "prior", "log_likelihood", "log_prior", "observed_data"} <= set(
        opened.children
    )
    assert len(az.summary(opened, var_names=["sharpness"], ci_prob=0.9)) == 1
    assert np.isfinite(az.loo(opened, var_name="log_time").elpd)
    assert [p.name for p in tmp_path.iterdir()] == ["profile.nc"]


def test_files_that_are_no_profile(profile: bp.Profile, tmp_path: Path) -> None:
    path = tmp_path / "profile.nc"
    profile.save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UnsupportedFileError, match="truncated"):
        bp.load_profile(path)
    path.write_text("not a profile")
    with pytest.raises(UnsupportedFileError):
        bp.load_profile(path)
    xr.Dataset({"x": 1}).to_netcdf(path, engine="h5netcdf")
    with pytest.raises(UnsupportedFileError, match="not a bayesperf profile"):
        bp.load_profile(path)
    with pytest.raises(InputError, match="no such file"):
        bp.load_profile(tmp_path / "absent.nc")
    with pytest.raises(InputError, match=r"\*\.nc"):
        profile.save(tmp_path / "profile.txt")


def test_a_newer_profile_is_refused(profile: bp.Profile, tmp_path: Path) -> None:
    path = tmp_path / "profile.nc"
    profile.save(path)
    with xr.open_datatree(path, engine="h5netcdf") as opened:
        tree = opened.load()
    tree.attrs["schema_version"] = 99
    tree.to_netcdf(path, engine="h5netcdf")
    with pytest.raises(UnsupportedFileError, match="newer"):
        bp.load_profile(path)
    damages: tuple[tuple[dict[str, str | None], str], ...] = (
        ({"facts": None}, "'facts' is missing"),
        ({"gate": "["}, r"damaged \(Expecting value"),
    )
    for damage, words in damages:
        broken = xr.DataTree.from_dict({name: node.to_dataset() for name, node in tree.children.items()})
        attrs: dict[Any, Any] = {**tree.attrs, "schema_version": 1, **damage}
        broken.attrs = {name: value for name, value in attrs.items() if value is not None}
        broken.to_netcdf(path, engine="h5netcdf")
        with pytest.raises(UnsupportedFileError, match=words):
            bp.load_profile(path)


def test_draws_of_other_observations_are_refused(profile: bp.Profile, tmp_path: Path) -> None:
    """As when the model that is installed leaves rows out which the one that was fitted did not."""
    path = tmp_path / "profile.nc"
    profile.save(path)
    with xr.open_datatree(path, engine="h5netcdf") as opened:
        tree = opened.load()
    fitted = tree["observed_data"].to_dataset()
    for other in (fitted.isel(observation=slice(1, None)), fitted.isel(observation=slice(None, None, -1))):
        groups = {name: node.to_dataset() for name, node in tree.children.items()}
        changed = xr.DataTree.from_dict({**groups, "observed_data": other})
        changed.attrs = tree.attrs
        changed.to_netcdf(path, engine="h5netcdf")
        with pytest.raises(UnsupportedFileError, match="other observations"):
            bp.load_profile(path)


def test_an_unconverged_profile_speaks_only_when_asked_to(profile: bp.Profile) -> None:
    inference = profile.inference
    failed = [Check("R-hat", 1.2, 1.01, False, "x", "sample longer")]
    doubtful = bp.Profile(
        Inference(inference.tree, inference.model, inference.encoded, inference.rows, None, failed, inference.facts)
    )
    assert not doubtful.converged
    with pytest.raises(UnconvergedError, match="R-hat FAILED"):
        doubtful.predict(WORKLOAD)
    assert np.isfinite(doubtful.predict(WORKLOAD, allow_unconverged=True).median())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"flops": np.nan}, "column flops"),
        ({"bytes": -1.0}, "column bytes"),
        ({"op": None}, "column op"),
        ({"m": "wide"}, "column m: 'wide' is not a number"),
        ({"k": -1.0}, "column k: -1 is not at least 0"),
    ],
)
def test_bad_workloads_name_the_column(profile: bp.Profile, changes: dict[str, object], message: str) -> None:
    with pytest.raises(TableError, match=message):
        profile.predict({**WORKLOAD, **changes})


def test_unknown_target_and_missing_columns(profile: bp.Profile) -> None:
    with pytest.raises(UnknownNameError, match="box"):
        profile.predict(WORKLOAD, target="bex")
    with pytest.raises(TableError, match="flops"):
        profile.predict({"op": "matmul", "bytes": 1.0})


def test_wrong_arguments_are_refused(profile: bp.Profile) -> None:
    for options in ({"draws": 0}, {"draws": "many"}, {"seed": -1}, {"mean": True, "campaign": "monday"}):
        with pytest.raises(InputError):
            profile.predict(WORKLOAD, **options)
    for workloads in (None, "matmul", 3, [WORKLOAD, 3]):
        with pytest.raises(InputError, match="mapping"):
            profile.predict(workloads)  # type: ignore[arg-type]
    for name in ("target", "campaign", "stack"):
        with pytest.raises(InputError, match=f"{name} is given by its name"):
            profile.predict(WORKLOAD, **{name: ["box"]})  # type: ignore[arg-type]
    with pytest.raises(InputError, match="seconds"):
        profile.predict(WORKLOAD).cdf(np.nan)
    with pytest.raises(InputError, match="1 workloads"):
        profile.predict(WORKLOAD).cdf([1.0, 2.0])  # type: ignore[arg-type]
    for interval in (0.0, 1.5):
        with pytest.raises(InputError, match="between 0 and 1"):
            profile.parameters(interval)
    with pytest.raises(InputError, match="interval must be a number between 0 and 1, not '90%'"):
        profile.predict(WORKLOAD).interval("90%")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="quantiles are numbers"):
        profile.predict(WORKLOAD).quantile("median")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="path"):
        bp.load_profile(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"draws": 0}, {"chains": 0}, {"tune": -3}, {"attempts": 0}, {"seed": -1}])
def test_a_sampling_that_cannot_be_is_refused(table: pd.DataFrame, options: dict[str, int]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        bp.fit(table, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("nothing", [None, 3, "table.csv", [None]])
def test_what_is_no_table_is_refused(nothing: object) -> None:
    with pytest.raises(InputError, match="DataFrame"):
        bp.fit(nothing)  # type: ignore[arg-type]


def test_what_is_learned_is_also_known(profile: bp.Profile) -> None:
    parameters = profile.parameters()
    learned = parameters[parameters["learned"]]
    assert (learned["upper"] < 3.0 * learned["lower"]).all()
    # Nothing in the table says what a launch of a chained kernel costs, however vague the prior was.
    vague = parameters[parameters["upper"] > 3.0 * parameters["lower"]]
    assert len(vague)
    assert not vague["learned"].any()


def test_kernels_that_were_not_measured_are_named(profile: bp.Profile) -> None:
    assert not any("not measured" in note for note in profile.predict(WORKLOAD).notes)
    prediction = profile.predict([WORKLOAD, {**WORKLOAD, "op": "sort"}])
    assert any("sort" in note and "matmul" not in note for note in prediction.notes)
    assert prediction.supported.all()


def test_what_is_not_predicted_is_said(profile: bp.Profile) -> None:
    sheets = pd.DataFrame({"device": ["new"], "peak_flops_float32": [1e12], "bandwidth_bytes_per_s": [1e11]})
    unmeasured = profile.predict(WORKLOAD, "new", targets=sheets)
    assert not unmeasured.supported.any()
    assert "new was not measured: predicted from its spec sheet" in " ".join(unmeasured.notes)
    beside = profile.predict({**WORKLOAD, "corunners": "stream_triad:1"})
    assert "does not predict co-runners" in " ".join(beside.notes)
    assert not beside.supported.any()


def test_fitted_rows_are_not_held_out(profile: bp.Profile) -> None:
    with pytest.raises(InputError, match="fitted"):
        profile.validate(profile.table)


def test_an_impossible_rate_is_refused(table: pd.DataFrame) -> None:
    sheets = check_targets(pd.DataFrame({"device": ["box"], "peak_flops_float32": [RATE / 10]}))
    with pytest.raises(CeilingError, match=r"table, row \d+, column time_s: .*above the peak"):
        bp.fit(table, targets=sheets)


def test_validation_of_the_same_physics_transfers(profile: bp.Profile, table: pd.DataFrame) -> None:
    validation = profile.validate(table)
    assert set(validation.groups["verdict"]) == {"transfers"}
    assert validation.settings["estimand"] == "same campaign"
    assert validation.coverage >= 0.75
    total = validation.scores.iloc[-1]
    assert total["group"] == "all"
    # The baseline has exactly the form that was simulated: nothing can be much better, and we must not be worse.
    assert total["crps"] < 1.3 * total["crps_baseline"]
    assert len(validation.rows) == 12


def test_a_validation_writes_its_report(profile: bp.Profile, table: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "validation.html"
    profile.validate(table).to_html(path)
    text = path.read_text()
    assert "compute" in text
    assert "stream_triad" in text


def test_validation_finds_a_shift(profile: bp.Profile) -> None:
    shifted = roofline_table(12, heldout=True, shift=0.5)
    validation = profile.validate(shifted)
    assert validation.any_fails
    assert validation.groups["shift"].between(0.4, 0.6).all()


def test_another_campaign_is_judged_as_a_fresh_one(profile: bp.Profile) -> None:
    later = roofline_table(13, heldout=True, campaigns=("tuesday",), shift=0.05)
    validation = profile.validate(later)
    assert validation.settings["estimand"] == "fresh campaign"
    assert not validation.any_fails
    assert "campaign spread assumed, one campaign seen" in validation.notes


def test_one_campaign_cannot_tell_a_change_of_a_fifth_from_a_campaign(profile: bp.Profile) -> None:
    later = roofline_table(14, heldout=True, campaigns=("tuesday",), shift=float(np.log(1.2)))
    groups = profile.validate(later).groups
    assert set(groups["verdict"]) == {"undecided"}
    assert groups["advice"].str.startswith("more campaigns, not rows").all()


def test_validation_settings_are_checked(profile: bp.Profile, table: pd.DataFrame) -> None:
    with pytest.raises(InputError, match="tolerance"):
        profile.validate(table, tolerance=2.0)
    with pytest.raises(InputError, match="seed"):
        profile.validate(table, seed=-1)


def test_rows_beside_corunners_are_not_judged_by_a_model_of_solo_work(profile: bp.Profile, table: pd.DataFrame) -> None:
    heldout = table[table["role"] == "heldout"].reset_index(drop=True)
    crowded = heldout.assign(corunners=pd.Series([None, "stream_triad*1"] * (len(heldout) // 2), dtype=object))
    validation = profile.validate(crowded)
    assert any("12 rows beside co-runners" in note for note in validation.notes)
    with pytest.raises(InputError, match="co-runners"):
        profile.validate(heldout.assign(corunners="stream_triad*1"))


@pytest.mark.slow
def test_launches_far_from_any_prior_are_learned() -> None:
    """Eight launches of 0.2 s, 40,000 times the prior's centre, are no outliers."""
    times = np.random.default_rng(0).uniform(0.2, 0.22, 8)
    rows = pd.DataFrame({"target": "x", "op": "launch", "flops": 0.0, "bytes": 0.0, "time_s": times})
    profile = bp.fit(rows, seed=1, attempts=1)
    lower, upper = profile.predict(rows.iloc[[0]], target="x", allow_unconverged=True).interval(0.9).to_numpy()
    assert 0.05 < lower.item() < 0.2 < upper.item() < 0.6
