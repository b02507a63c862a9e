"""The JSON document: its published schema is that of the code, and real documents keep it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pandas as pd
import pytest

from bayesperf.report.capability import capability_document
from bayesperf.report.document import Capability, generated_schema, schema_text

Make = Callable[..., Any]


def test_the_published_schema_is_that_of_the_code() -> None:
    assert schema_text() == generated_schema(), "publish it: write generated_schema() to schemas/capability-1.json"


@pytest.fixture
def document(table: pd.DataFrame, make_profile: Make, make_validation: Make) -> dict[str, Any]:
    found = capability_document(make_profile(table), validation=make_validation(table), measurements=table)
    text: dict[str, Any] = json.loads(found.model_dump_json())
    return text


def test_a_document_keeps_the_schema(document: dict[str, Any]) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(schema_text()))
    validator.check_schema(json.loads(schema_text()))
    validator.validate(document)
    assert Capability.model_validate(document).model_dump(mode="json") == document
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({**document, "schema_version": 2})
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({**document, "invented": 1})


def test_every_number_leads_to_measurements(document: dict[str, Any], table: pd.DataFrame) -> None:
    sets = {found["tag"]: found["measurement_ids"] for found in document["evidence"]}
    known = {row["measurement_id"] for row in document["measurements"]}
    assert known == set(table["measurement_id"])
    for part in ("parameters", "bottlenecks", "plateaus", "regimes"):
        assert document[part], part
        for entry in document[part]:
            assert set(sets[entry["basis"]["evidence"]]) <= known
    assert {row["hlo_hash"] for row in document["measurements"]} == {"feedc0de"}
    assert all(row["provenance_id"] in document["provenance"] for row in document["measurements"])


def test_the_document_states_what_it_assumes(document: dict[str, Any]) -> None:
    assert document["assumptions"]["campaigns"] == {"some-cpu-2-core-x2": 1}
    assert any("exchangeable" in line for line in document["assumptions"]["statements"])
    assert document["overall"]["fails"] == 1
    assert [p["learned"] for p in document["parameters"]] == [True, True, False]


def test_sheets_appear_beside_the_posterior(table: pd.DataFrame, make_profile: Make) -> None:
    sheets = pd.DataFrame({"peak_flops_float32": [4e11]}, index=["some-cpu-2-core-x2"])
    only = table.loc[(table["op"] == "matmul") & (table["dtype"] == "float32"), "measurement_id"].tolist()
    found = capability_document(make_profile(table, spec_sheets=sheets, evidence=only))
    rate = next(p for p in found.parameters if p.parameter == "compute_rate")
    assert rate.attained is not None
    assert rate.attained.share.median == pytest.approx(0.5)
