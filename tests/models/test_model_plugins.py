"""Models of others come from installed distributions, only when they are named, and by their content."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from donewhen.foundation.errors import ConfigError
from donewhen.judging.mission_terms import mission_terms
from donewhen.models import plugins
from donewhen.models.plugins import find_plugin
from donewhen.models.registry import open_model, plugin_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "donewhen-example-model"


def install(folder: Path, name: str = "donewhen-example-model", kind: str = "oneword") -> Path:
    """What an installer leaves in an environment."""
    package = folder / "donewhen_example_model"
    if not package.exists():
        shutil.copytree(EXAMPLE / "src" / "donewhen_example_model", package)
    about = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[donewhen.models]\n{kind} = donewhen_example_model:open_model\n")
    (about / "RECORD").write_text("donewhen_example_model/__init__.py,,\n")
    return package / "__init__.py"


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.setattr(plugins.sysconfig, "get_path", lambda name: str(folder))
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    sys.modules.pop("donewhen_example_model", None)


def test_a_named_model_is_opened_with_what_follows_its_name(environment: Path) -> None:
    install(environment)
    assert open_model("oneword:soon").name == "oneword/1 soon"


def test_nothing_is_searched_or_imported_until_it_is_named(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(environment)
    monkeypatch.setattr(plugins, "distributions", None)
    for choice in ("contrast", "local:x", "openai:gpt", "anthropic:x", "../x", ""):
        assert plugin_of(choice) is None
    monkeypatch.undo()
    assert find_plugin("oneword", [str(environment)]) is not None
    assert "donewhen_example_model" not in sys.modules


def test_a_plugin_cannot_take_the_place_of_a_built_in_model(environment: Path) -> None:
    install(environment, kind="contrast")
    assert type(open_model("contrast")).__module__ == "donewhen.models.contrast"


def test_a_distribution_in_the_projects_folder_is_not_found(
    environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    install(project)
    monkeypatch.chdir(project)
    monkeypatch.syspath_prepend(str(project))
    with pytest.raises(ConfigError, match="Unknown model 'oneword'"):
        open_model("oneword")


def test_two_distributions_with_one_name_are_refused(environment: Path) -> None:
    install(environment)
    install(environment, name="another-model")
    with pytest.raises(ConfigError, match=r"Both another-model 1.0 and donewhen-example-model 1.0"):
        open_model("oneword")


@pytest.mark.parametrize(
    ("code", "said"),
    [("raise OSError('no')", "can't be opened: OSError: no"), ("def open_model(rest): return 1", "is no model")],
)
def test_a_plugin_that_does_not_work_is_a_sentence(environment: Path, code: str, said: str) -> None:
    install(environment).write_text(code)
    with pytest.raises(ConfigError, match=said):
        open_model("oneword")


def test_the_content_of_the_distribution_is_part_of_the_terms(environment: Path, tmp_path: Path) -> None:
    code = install(environment)
    mission = tmp_path / "mission"
    subprocess.run([sys.executable, "-m", "donewhen", "mission", "new", str(mission)], capture_output=True, check=True)
    assert "model_program" not in mission_terms(mission)
    settings = mission / "mission.toml"
    settings.write_text(
        'model = "oneword"\n'
        + "".join(line for line in settings.read_text().splitlines(keepends=True) if not line.startswith("model ="))
    )
    before = mission_terms(mission)
    assert str(before["model_program"]).startswith("donewhen-example-model 1.0 sha256:")
    assert mission_terms(mission) == before
    code.write_text(code.read_text() + "# other\n")
    assert mission_terms(mission)["model_program"] != before["model_program"]


def test_a_distribution_whose_content_is_not_known_is_no_term(environment: Path) -> None:
    install(environment)
    (environment / "donewhen_example_model-1.0.dist-info" / "RECORD").write_text("__editable__.pth,,\n")
    plugin = find_plugin("oneword")
    assert plugin is not None
    with pytest.raises(ConfigError, match="without -e"):
        plugin.fingerprint()
