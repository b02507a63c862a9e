"""Profiles of the toy model."""

from __future__ import annotations

import pytest

from bayesperf.prediction.profile import Profile
from tests.checks.toy import toy_profile, toy_table


@pytest.fixture(scope="package")
def profile() -> Profile:
    """A profile that fits its measurements."""
    return toy_profile(toy_table(3))
