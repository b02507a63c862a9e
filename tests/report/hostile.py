"""Every kind of report, made of text that breaks what does not escape it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayesperf.prediction.diff import diff
from bayesperf.report.capability import capability_page
from bayesperf.report.comparison import comparison_page
from bayesperf.report.difference import difference_page
from bayesperf.report.validation import validation_page
from tests.exact import PRIOR, World, exact_profile
from tests.report.conftest import measurements, profile_of, validation_of

__all__ = ["attack", "hostile_pages"]


def attack(address: str) -> str:
    """Text that says ``pwned`` to the page around, and asks the network, wherever it is taken for markup."""
    say = "parent.postMessage('pwned','*')"
    return (
        f"x\"'&$x^$ {{{{7*7}}}}<script>{say}</script><img src={address}/pwned onerror={say}><svg onload={say}></svg>"
        f"<link rel=stylesheet href={address}/pwned.css></style></title>"
    )


def hostile_pages(text: str) -> dict[str, str]:
    """Every kind of report, with the text wherever a file can put it."""
    table = measurements(text)
    table["op"] = table["op"].where(table["op"] != "softmax", text)
    table["campaign"] = table["flags"] = table["process"] = table["stop_reason"] = table["note"] = text
    table["hlo_hash"] = table["point_id"] = table["stack"] = text
    table["measurement_id"] = [f"{text}{at}" for at in range(len(table))]
    alone = table[table["op"] == "stream_triad"].head(1)
    beside = alone.assign(corunners=text, measurement_id=f"{text}-beside")
    among = alone.assign(
        op=[f"{text}-op"], message_bytes=1e3, n_devices=2.0, measurement_id=f"{text}-m1", corunners=None
    )
    more = among.assign(message_bytes=1e6, measurement_id=f"{text}-m2")
    whole = pd.concat([table.assign(corunners=None), beside, among, more], ignore_index=True)
    whole.attrs["provenance"] = {text: {text: text}}
    validation = validation_of(table)
    validation.groups["advice"] = validation.groups["regime"] = validation.groups["reason"] = text
    facts = {"caveats": [text], text: {text: text}}
    profile: Any = profile_of(whole, facts=facts, model_name=text, poor_fits=[text], undescribed=[f"{text}-op"])
    failures = pd.DataFrame({text: [text], "op": text, "reason": text, "detail": text})
    bandwidth = {text: PRIOR[0], f"b{text}": PRIOR[0] + 0.5}
    named = World().measure(np.random.default_rng(1), bandwidth, campaigns=[text]).assign(op=text)
    exact = [
        exact_profile(World(), named.assign(measurement_id=named["measurement_id"] + end), 1, draws=400) for end in "ab"
    ]
    workloads = pd.DataFrame({"op": [text, "copy"], "flops": 0.0, "bytes": [1e7, 1e8], "class": [text, "copies"]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bayesperf.report.content.poor_fits", lambda simulated: list(simulated.poor_fits))
        return {
            "capability": capability_page(profile, validation=validation, measurements=whole, failures=failures),
            "validation": validation_page(profile, validation, table),
            "comparison": comparison_page(exact[0].compare([text, f"b{text}"], workloads)),
            "difference": difference_page(diff(exact[0], exact[1])),
        }
