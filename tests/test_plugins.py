from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from bayesperf import plugins
from bayesperf.errors import InputError, UnknownNameError

MATMUL = "bayesperf.probes.matmul:probe"
Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Pretend that plug-ins are installed: name -> where."""

    def pretend(*found: tuple[str, str]) -> None:
        points = EntryPoints(EntryPoint(name, value, "bayesperf.probes") for name, value in found)
        monkeypatch.setattr(plugins, "entry_points", lambda group: points.select(group=group))
        plugins._entry_points.cache_clear()

    yield pretend
    plugins._entry_points.cache_clear()


def test_listing_loads_nothing(install: Install) -> None:
    install(("broken", "no.such.module:probe"), ("sqrt", "math:sqrt"))
    assert plugins.available("probe") == {"broken": "no.such.module:probe", "sqrt": "math:sqrt"}


def test_loading_by_name(install: Install) -> None:
    install(("mine", MATMUL))
    assert plugins.load("probe", "mine").name == "matmul"


def test_what_is_no_probe_is_blamed_by_name(install: Install) -> None:
    install(("sqrt", "math:sqrt"))
    with pytest.raises(InputError, match=r"probe 'sqrt' \(math:sqrt\) is no probe.*configurations"):
        plugins.load("probe", "sqrt")


def test_unknown_name_lists_what_exists_nearest_first(install: Install) -> None:
    install(("stream", "math:sqrt"), ("matmul", "math:sqrt"))
    with pytest.raises(UnknownNameError) as caught:
        plugins.load("probe", "matmull")
    assert caught.value.known == ["matmul", "stream"]


@pytest.mark.parametrize("value", ["no.such.module:probe", "math:no_such_thing", "this is no reference"])
def test_broken_plugin_is_blamed_by_name(install: Install, value: str) -> None:
    install(("broken", value))
    with pytest.raises(InputError, match="probe 'broken'"):
        plugins.load("probe", "broken")


def test_broken_plugin_does_not_stop_the_others(install: Install) -> None:
    install(("broken", "no.such.module:probe"), ("mine", MATMUL))
    with pytest.warns(UserWarning, match=r"left out: probe 'broken'.*no\.such\.module"):
        loaded = plugins.load_all("probe")
    assert set(loaded) == {"mine"}


def test_one_name_registered_twice_warns_and_is_deterministic(install: Install) -> None:
    install(("stream", "math:sqrt"), ("stream", "math:cos"))
    with pytest.warns(UserWarning, match="registered twice"):
        found = plugins.available("probe")
    assert found == {"stream": "math:cos"}


def test_what_others_install_does_not_replace_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    (ours,) = (p for p in importlib.metadata.entry_points(group="bayesperf.probes") if p.name == "matmul" and p.dist)
    theirs = EntryPoint("matmul", "aaa:probe", "bayesperf.probes")
    monkeypatch.setattr(plugins, "entry_points", lambda group: [theirs, ours])
    plugins._entry_points.cache_clear()
    with pytest.warns(UserWarning, match="registered twice"):
        assert plugins.available("probe") == {"matmul": MATMUL}
    plugins._entry_points.cache_clear()


def test_the_same_registration_seen_twice_is_no_conflict(install: Install) -> None:
    # An editable install beside a wheel shows every entry point twice.
    install(("sqrt", "math:sqrt"), ("sqrt", "math:sqrt"))
    assert plugins.available("probe") == {"sqrt": "math:sqrt"}


def test_every_registered_plugin_of_this_package_loads() -> None:
    for kind in plugins.GROUPS:
        assert set(plugins.load_all(kind)) == set(plugins.available(kind))
