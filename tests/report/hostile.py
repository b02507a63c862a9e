"""Every kind of report, made of text that breaks what does not escape it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayesperf.batch.summary import summary_page
from bayesperf.prediction.diff import diff
from bayesperf.report.capability import capability_page
from bayesperf.report.comparison import comparison_page
from bayesperf.report.difference import difference_page
from bayesperf.report.explanation import PARTS, explanation_page
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
        # Out of an attribute, a comment, a script and a JSON text in one; a link that runs; entities decoded twice.
        f'" onmouseover="{say}" style="background:url({address}/pwned.png)" \'--><![CDATA[</script>'
        f"<a href=javascript:{say}>x</a>&lt;script&gt;{say}&lt;/script&gt;{{% raw %}}\\u003cscript\\u003e`${{{say}}}`"
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
    _name(profile, text, table)
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
            "explanation": explanation_page(_explained(text), text),
            "batch": summary_page(_summed(text)),
        }


def _name(profile: Any, text: str, table: pd.DataFrame) -> None:
    """Give a profile's parameters such names and units, and a spec sheet such a source."""
    products = table[(table["op"] == "matmul") & (table["dtype"] == "float32")]
    profile.evidence = list(products["measurement_id"])
    peak = {"peak_flops_float32": [4e11], "peak_flops_float32_source": [text]}
    profile.spec_sheets = pd.DataFrame(peak, index=[text])
    plain = profile.parameters()
    named = plain.assign(label=text, parameter=[*plain["parameter"][:-1], text], unit=[*plain["unit"][:-1], text])
    profile.parameters = lambda interval=0.9: named


def _explained(text: str) -> Any:
    """A program's evidence, as explanations ask for it."""
    seconds = {"predicted_s": 1e-3, "lower_s": 9e-4, "upper_s": 1.2e-3, "ratio": 1.1, "verdict": text}
    parts = dict.fromkeys((f"{part}_s" for part in PARTS), 1e-4)
    whole = {"measured_s": 1e-3, "traced_s": 2e-3, "tracing_overhead": 1.0, "supported": False, **parts, **seconds}
    kernel = {"instruction": text, "op": text, "source": text, "count": 2.0, "measured_s": 1e-3, "share": 0.5}
    kernels = pd.DataFrame([{**kernel, **seconds, "held_back": text}])
    return SimpleNamespace(
        summary=lambda level: pd.DataFrame([whole]), by_kernel=lambda level: kernels, prediction=object(), notes=[text]
    )


def _summed(text: str) -> dict[str, Any]:
    """A batch's summary: a job that failed, and one with a verdict."""
    job = {"job": text, "id": text, "folder": f"jobs/{text}", "data": text, "model": text, "targets": [text], "seed": 1}
    verdict = {"target": text, "regime": text, "verdict": "fails", "n_rows": 3, "advice": text}
    check = {"name": text, "value": 1.2, "limit": 1.01, "passed": False, "remedy": text}
    good = {"status": "unconverged", "gate": [check], "validation": {"verdicts": [verdict], "coverage_90": 0.5}}
    files: dict[str, Any] = {"report.html": {}, "validation.html": {}, "profile.nc": {}, "log.txt": {}, text: {}}
    jobs = [{**job, "status": "failed", "reason": text, "seconds": {text: 1.0}}, {**job, **good, "files": files}]
    return {
        "title": text,
        "version": text,
        "counts": {"failed": 1, "unconverged": 1},
        "verdicts": {"fails": 1, "undecided": 0, "transfers": 0},
        "jobs": jobs,
    }
