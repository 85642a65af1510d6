"""A package can leave the importing of its names to their first use."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from donewhen.foundation.lazy import lazy_attributes
from sentences import assert_sentences


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package ``lazy_garden`` with the files ``trees`` (Oak) and ``broken``, and a name passed on from elsewhere."""
    folder = tmp_path / "lazy_garden"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from donewhen.foundation.lazy import lazy_attributes\n"
        "__all__ = ['Oak', 'Rose', 'sqrt']\n"
        "files = {'Oak': 'trees', 'Rose': 'broken', 'Elm': 'trees'}\n"
        "__getattr__ = lazy_attributes(__name__, files, {'sqrt': 'math'})\n"
    )
    (folder / "trees.py").write_text("class Oak: pass\n")
    (folder / "broken.py").write_text("raise RuntimeError('no roses')\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "lazy_garden"
    for name in [name for name in sys.modules if name.partition(".")[0] == "lazy_garden"]:
        del sys.modules[name]


def test_a_name_is_imported_when_it_is_first_used(package: str) -> None:
    module = import_module(package)
    assert f"{package}.trees" not in sys.modules
    oak = module.Oak
    assert oak is sys.modules[f"{package}.trees"].Oak
    assert oak.__module__ == f"{package}.trees"


def test_a_name_is_looked_up_once(package: str) -> None:
    module = import_module(package)
    assert "Oak" not in vars(module)
    assert module.Oak is vars(module)["Oak"] is module.Oak


def test_a_name_can_be_imported_from_the_package(package: str) -> None:
    names: dict[str, object] = {}
    exec(f"from {package} import Oak", names)  # noqa: S102 - an import statement is what is tested
    assert names["Oak"] is import_module(f"{package}.trees").Oak


def test_a_name_is_passed_on_from_another_module(package: str) -> None:
    assert import_module(package).sqrt(9) == 3


def test_a_name_that_the_package_does_not_have_is_an_attribute_error_that_names_both(package: str) -> None:
    module = import_module(package)
    with pytest.raises(AttributeError) as caught:
        _ = module.Tulip
    assert_sentences(caught.value)
    assert not hasattr(module, "Tulip")


def test_a_file_that_does_not_define_its_name_is_an_attribute_error(package: str) -> None:
    with pytest.raises(AttributeError, match="Elm"):
        _ = import_module(package).Elm


def test_a_file_that_can_not_be_imported_says_so_each_time(package: str) -> None:
    module = import_module(package)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no roses"):
            _ = module.Rose


def test_making_the_lookup_imports_nothing() -> None:
    lazy_attributes("no_such_package", {"Name": "file"}, {"Other": "no_such_module"})
    assert "no_such_module" not in sys.modules


@pytest.mark.parametrize("name", ["donewhen.runtime", "donewhen.protocols", "donewhen.filesystem"])
def test_every_public_name_of_these_rooms_is_there(name: str) -> None:
    module = import_module(name)
    assert sorted(set(module.__all__)) == sorted(module.__all__)
    for public in module.__all__:
        assert getattr(module, public) is not None
