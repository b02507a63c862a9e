"""Statistical checks of a fit, on top of ArviZ and simuk; see docs/checks.md.

What a fit says of its own measurements (`posterior_predictive`, `residuals`, `poor_fits`, `loo`, `loo_pit`), of what it
has not seen (`leave_out`), of its priors (`prior_predictive`, `prior_above_peak`, `sensitivity`), of its computation
(`sbc`), and of other models of the same measurements (`stack`).
"""

from bayesperf.checks.calibration import Calibration, sbc
from bayesperf.checks.fitted import Residuals, poor_fits, residuals
from bayesperf.checks.group_out import LeftOut, leave_out
from bayesperf.checks.mixture import Modes, repeat_modes, two_modes
from bayesperf.checks.one_out import Loo, LooPit, loo, loo_pit
from bayesperf.checks.predictive import posterior_predictive, prior_above_peak, prior_predictive
from bayesperf.checks.prior_sense import sensitivity
from bayesperf.checks.stacking import stack

__all__ = [
    "Calibration",
    "LeftOut",
    "Loo",
    "LooPit",
    "Modes",
    "Residuals",
    "leave_out",
    "loo",
    "loo_pit",
    "poor_fits",
    "posterior_predictive",
    "prior_above_peak",
    "prior_predictive",
    "repeat_modes",
    "residuals",
    "sbc",
    "sensitivity",
    "stack",
    "two_modes",
]
