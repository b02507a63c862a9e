from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bayesperf.checks import sensitivity
from bayesperf.checks.prior_sense import top_level_priors
from bayesperf.errors import UnknownNameError
from bayesperf.prediction.profile import Profile
from tests.checks.toy import PRIOR, array

SENSITIVITIES = ("prior", "likelihood", "prior_noise", "likelihood_noise")


def test_what_many_rows_determine_is_not_sensitive_to_a_vague_prior(profile: Profile) -> None:
    found = sensitivity(profile)
    assert list(found.columns) == ["parameter", "target", "label", *SENSITIVITIES, "diagnosis"]
    assert len(found) == 8
    assert (found["prior"] < 0.05).all()
    assert (found["likelihood"] > 0.05).all()
    assert set(found["diagnosis"]) == {"not sensitive"}


def test_a_prior_that_decides_is_told(profile: Profile) -> None:
    """Draws of the prior under a likelihood that says nothing: the prior alone decides."""
    rng = np.random.default_rng(1)
    tree = profile.tree.copy(deep=True)
    level = rng.normal(*PRIOR, size=array(tree, "posterior", "level").shape)
    array(tree, "posterior", "level").values[:] = level
    array(tree, "log_prior", "level").values[:] = -0.5 * ((level - PRIOR[0]) / PRIOR[1]) ** 2
    array(tree, "log_likelihood", "log_time").values[:] = 1e-3 * rng.standard_normal((4, 250, 48))
    found = sensitivity(Profile(replace(profile.inference, tree=tree)))
    assert (found["prior"] > 0.05).all()
    assert all("prior, hardly data" in text for text in found["diagnosis"])


def test_what_is_no_larger_than_noise_does_not_count(profile: Profile) -> None:
    """Draws that have nothing to do with the densities, which vary enough to reweight them at random."""
    rng = np.random.default_rng(2)
    tree = profile.tree.copy(deep=True)
    array(tree, "log_prior", "level").values[:] = 12 * rng.standard_normal((4, 250, 4))
    found = sensitivity(Profile(replace(profile.inference, tree=tree)))
    assert (found["prior"] > 0.05).any()
    assert (found["prior_noise"] > 0.05).any()
    # One of four turns is the largest by chance.
    assert (found["diagnosis"] == "not sensitive").mean() >= 0.5


def test_only_priors_that_exist_are_scaled(profile: Profile) -> None:
    assert top_level_priors(profile) == ["level"]
    with pytest.raises(UnknownNameError, match="level"):
        sensitivity(profile, priors=["levels"])
