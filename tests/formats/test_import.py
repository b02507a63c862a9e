from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bayesperf.errors import InputError, UnknownNameError, UnsupportedFileError
from bayesperf.formats import find_format, import_files
from bayesperf.formats.source import MAX_LINE
from bayesperf.plugins import available
from bayesperf.specs import check_targets
from bayesperf.store import provenance_of, read_measurements, write_measurements

NAMES = {
    "babelstream": "babelstream.csv",
    "cuda-stream": "cuda_stream_si.txt",
    "google-benchmark": "google_benchmark.json",
    "mixbench": "mixbench.csv",
    "nccl-tests": "nccl_new.txt",
    "nvbandwidth": "nvbandwidth_new.txt",
    "nvbench": "nvbench.json",
    "osu": "osu_many.txt",
    "pyperf": "pyperf.json",
    "stream": "stream_old.txt",
}


def test_every_installed_format_has_a_fixture() -> None:
    assert set(available("format")) >= {*NAMES, "generic"}


@pytest.mark.parametrize("name", NAMES)
def test_every_format_recognises_its_own_and_only_its_own(name: str, fixture_file: Any) -> None:
    assert import_files("auto", [fixture_file(NAMES[name])]).report.files[0].format == name


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_traceable_and_survive_the_disk(name: str, fixture_file: Any, tmp_path: Path) -> None:
    path = fixture_file(NAMES[name])
    result = import_files(name, [path])
    (key, record), *rest = provenance_of(result.table).items()
    assert not rest
    assert set(result.table["provenance_id"]) == {key}
    assert record["file"] == path.name
    assert record["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert record["format"] == {"name": name, "version": 1}
    assert str(path.parent) not in json.dumps(record)
    write_measurements(result.table, tmp_path / "t.parquet")
    back = read_measurements(tmp_path / "t.parquet")
    assert back["time_s"].tolist() == result.table["time_s"].tolist()
    assert provenance_of(back) == provenance_of(result.table)
    json.dumps(result.report.as_dict(), allow_nan=False)
    assert f"{path.name}: {len(result.table)} rows" in result.report.text()


def test_files_of_different_columns_join(fixture_file: Any) -> None:
    files = [fixture_file("stream_old.txt"), fixture_file("babelstream.csv"), fixture_file("pyperf.json")]
    result = import_files("auto", files)
    assert len(result.table) == 4 + 5 + 2
    assert len(provenance_of(result.table)) == 3
    assert result.table.groupby("campaign").ngroups == 3


def test_options_set_columns(fixture_file: Any) -> None:
    table = import_files("stream", [fixture_file("stream_old.txt")], target="t", device="d", campaign="c").table
    assert set(table["target"]) == {"t"}
    assert set(table["device"]) == {"d"}
    assert set(table["campaign"]) == {"c"}


def test_ceilings_of_the_sheet_are_applied(fixture_file: Any) -> None:
    sheet = pd.DataFrame({"device": ["d"], "bandwidth_bytes_per_s": [1.02e10], "cache_bytes": [1e6]})
    result = import_files("stream", [fixture_file("stream_old.txt")], device="d", targets=check_targets(sheet))
    flagged = result.table[result.table["flags"] == "above-ceiling+excluded"]
    assert flagged["op"].tolist() == ["stream_add", "stream_triad"]
    assert result.report.quality.excluded == 2
    assert "above what the spec sheet allows" in result.report.text()


def test_a_device_is_found_by_the_name_its_tool_prints(fixture_file: Any) -> None:
    sheet = check_targets(pd.DataFrame({"device": ["amd-instinct-mi250x"], "bandwidth_bytes_per_s": [1.6e12]}))
    table = import_files("nccl-tests", [fixture_file("nccl_reduce_scatter_mid.txt")], targets=sheet).table
    assert set(table["device"]) == {"amd-instinct-mi250x"}


def test_the_same_content_twice_is_refused(fixture_file: Any, tmp_path: Path) -> None:
    path = fixture_file("stream_old.txt")
    (tmp_path / "copy.txt").write_bytes(path.read_bytes())
    with pytest.raises(InputError, match="same content"):
        import_files("stream", [path, tmp_path / "copy.txt"])


def test_unknown_formats_and_files() -> None:
    with pytest.raises(UnknownNameError, match="nccl-tests"):
        find_format("nccl")
    assert find_format("NCCL_tests").name == "nccl-tests"
    with pytest.raises(InputError, match="no such file"):
        import_files("stream", ["absent.txt"])
    with pytest.raises(InputError, match="at least one"):
        import_files("stream", [])


def test_what_is_not_a_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="regular file"):
        import_files("stream", [tmp_path])
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(InputError, match="empty"):
        import_files("auto", [tmp_path / "empty"])
    (tmp_path / "utf16").write_bytes("STREAM".encode("utf-16"))
    with pytest.raises(UnsupportedFileError, match="iconv"):
        import_files("auto", [tmp_path / "utf16"])
    (tmp_path / "noise").write_bytes(bytes(range(256)) * 50)
    with pytest.raises(UnsupportedFileError, match="looked for"):
        import_files("auto", [tmp_path / "noise"])


@pytest.mark.parametrize("options", [{"n_devices": 0}, {"n_devices": -3}, {"buffer_bytes": 1.5}])
def test_options_are_checked(fixture_file: Any, options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="whole number"):
        import_files("osu", [fixture_file("osu_many.txt")], **options)


def test_noise_around_a_table_is_skipped(fixture_file: Any, tmp_path: Path) -> None:
    text = fixture_file("stream_old.txt").read_bytes()
    noisy = (
        b"\xff\xfe\x00 binary\n\x1b[31mred\x1b[0m\r\n" + b"x" * (3 * MAX_LINE) + b"\n" + text.replace(b"\n", b"\r\n")
    )
    (tmp_path / "noisy.txt").write_bytes(b" " + noisy)
    result = import_files("stream", [tmp_path / "noisy.txt"])
    assert len(result.table) == 4
    assert "long line" in result.report.files[0].skipped


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"benchmarks": ' + "[" * 100_000, "deep|damaged"),
        ('{"context": {}, "benchmarks": [{"real_time": 1', "truncated"),
        ('{"context": {}, "context": {"a": 1}, "benchmarks": []}', "twice"),
        ('{"benchmarks": ' + "9" * 5000 + "}", "damaged|digits"),
    ],
)
def test_hostile_json_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(UnsupportedFileError, match=message):
        import_files("google-benchmark", [tmp_path / "x.json"])


def test_importing_never_loads_the_inference_stack(fixture_file: Any) -> None:
    program = (
        "import sys; from bayesperf.formats import import_files; "
        f"import_files('auto', [{str(fixture_file('nccl_new.txt'))!r}]); "
        "bad = {'pymc', 'pytensor', 'arviz', 'nutpie', 'xarray', 'jax', 'scipy', 'matplotlib'} & set(sys.modules); "
        "sys.exit(str(bad) if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_options_without_effect_are_refused(fixture_file: Any) -> None:
    with pytest.raises(InputError, match="buffer_bytes has no effect on stream"):
        import_files("stream", [fixture_file("stream_old.txt")], buffer_bytes=5)
    with pytest.raises(InputError, match="statistic has no effect on mixbench"):
        import_files("mixbench", [fixture_file("mixbench.csv")], statistic="min")
