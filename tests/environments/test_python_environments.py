"""What is listed of Python environments, and which differences a person sees. Environments and pip are real."""

from __future__ import annotations

import json
import os
import py_compile
import shutil
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

from donewhen.environments.differences import differences
from donewhen.environments.explaining import unexplained
from donewhen.environments.manifests import declared_changes
from donewhen.environments.plugins import is_asked_for
from environments.environment_kit import Venv, listing_of, same_times, sentences, wheel

pytestmark = pytest.mark.scenes

PLUGIN = "[pytest11]\nquick = quick\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a virtual environment in which pytest is installed."""
    root = Path(os.path.realpath(tmp_path_factory.mktemp("made"))) / "shop"
    root.mkdir()
    venv = Venv(root / ".venv")
    venv.copy_from_here("pytest", "pluggy", "iniconfig", "packaging", "pygments")
    venv.unpack(wheel(root.parent / "wheels", "flask", "2.0", requires=("werk",)))
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    place = Path(os.path.realpath(tmp_path)) / "shop"
    shutil.copytree(made, place, symlinks=True)
    return place


def venv_of(root: Path) -> Venv:
    venv = Venv.__new__(Venv)
    venv.folder = root / ".venv"
    return venv


def now(root: Path) -> object:
    return listing_of(root, root / ".venv")


def requirements(*lines: str) -> dict[str, str]:
    return {"requirements.txt": "\n".join(lines)}


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


CHEATS = {
    "a .pth file": lambda venv: write(venv.site / "x.pth", "import os\n"),
    "a sitecustomize": lambda venv: write(venv.site / "sitecustomize.py", ""),
    "a compiled sitecustomize": lambda venv: (venv.site / "sitecustomize.pyc").write_bytes(b"x"),
    "an edited pytest": lambda venv: edited(venv.site / "_pytest" / "runner.py"),
    "an edited pytest with a RECORD that fits": lambda venv: rewritten_record(venv),
    "an edited pytest that has its old time": lambda venv: edited_with_its_time(venv.site / "_pytest" / "runner.py"),
    "a file of no distribution": lambda venv: write(venv.site / "_pytest" / "extra.py", ""),
    "a module of no distribution": lambda venv: write(venv.site / "numpy.py", ""),
    "a namespace package": lambda venv: write(venv.site / "numpy" / "core.py", ""),
    "a module without source": lambda venv: (venv.site / "exceptiongroup.pyc").write_bytes(b"x"),
    "a compiled module beside its source": lambda venv: (venv.site / "pluggy/_hooks.so").write_bytes(b"x"),
    "a module among compiled ones": lambda venv: write(venv.site / "pluggy/__pycache__/evil.py", ""),
    "a link to elsewhere": lambda venv: (venv.site / "numpy").symlink_to(venv.folder.parent.parent),
    "a package replaced by a link": lambda venv: replaced_by_link(venv.site / "pluggy"),
    "another program": lambda venv: replaced(venv.folder / "bin" / "python3"),
    "a new program": lambda venv: write(venv.folder / "bin" / "diff", "#!/bin/sh\n"),
    "packages of the system": lambda venv: edited_settings(venv.folder / "pyvenv.cfg"),
    "a distribution's entry points": lambda venv: write(
        next(venv.site.glob("flask-*")) / "entry_points.txt", "[pytest11]\nx = flask\n"
    ),
    "a pytest that calls itself another version": lambda venv: other_version(venv, "pytest", "99.0"),
    "a pluggy that calls itself another version": lambda venv: other_version(venv, "pluggy", "99.0"),
    "a plug-in": lambda venv: venv.unpack(
        wheel(venv.folder.parent.parent / "w", "quick", files={"quick.py": ""}, points=PLUGIN)
    ),
    "a distribution with a .pth file": lambda venv: venv.unpack(
        wheel(venv.folder.parent.parent / "w", "quick", files={"quick.pth": "import os\n"})
    ),
    "a distribution that takes another's name": lambda venv: venv.unpack(
        wheel(venv.folder.parent.parent / "w", "quick", files={"pluggy/more.py": ""})
    ),
    "a distribution that takes a module's name": lambda venv: venv.unpack(
        wheel(venv.folder.parent.parent / "w", "quick", files={"flask.cpython-311-x86_64-linux-gnu.so": ""})
    ),
    "a distribution of the name that pytest needs": lambda venv: (
        shutil.rmtree(next(venv.site.glob("pluggy-*"))),
        shutil.rmtree(venv.site / "pluggy"),
        venv.unpack(wheel(venv.folder.parent.parent / "w", "pluggy", "99.0")),
    ),
    "an empty file instead of metadata": lambda venv: (next(venv.site.glob("pytest-*")) / "METADATA").write_text(""),
}
DECLARED = requirements("quick", "pytest==99.0", "pluggy==99.0", "flask==9", "numpy", "exceptiongroup")
"""An agent declares everything that it has done."""


def edited(path: Path) -> None:
    path.write_text(path.read_text() + "\nimport os\n")


def edited_with_its_time(path: Path) -> None:
    before = path.stat()
    text = path.read_text()
    path.write_text(text.replace("True", "None"))
    assert path.read_text() != text
    same_times(path, before)
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def rewritten_record(venv: Venv) -> None:
    edited(venv.site / "_pytest" / "runner.py")
    record = next(venv.site.glob("pytest-*.dist-info")) / "RECORD"
    lines = [line for line in record.read_text().splitlines() if "runner.py" not in line]
    record.write_text("\n".join([*lines, "_pytest/runner.py,sha256=AAAA,1"]))


def replaced(path: Path) -> None:
    path.unlink()
    path.write_text("#!/bin/sh\nexit 0\n")
    path.chmod(0o755)


def replaced_by_link(path: Path) -> None:
    place = path.parent.parent.parent.parent.parent.parent / "elsewhere"
    shutil.move(path, place)
    path.symlink_to(place)


def edited_settings(path: Path) -> None:
    path.write_text(path.read_text().replace("= false", "= true"))


def other_version(venv: Venv, name: str, version: str) -> None:
    folder = next(venv.site.glob(f"{name}-*.dist-info"))
    text = (folder / "METADATA").read_text()
    lines = [f"Version: {version}" if line.startswith("Version:") else line for line in text.splitlines()]
    (folder / "METADATA").write_text("\n".join(lines))
    edited(venv.site / ("_pytest" if name == "pytest" else name) / "__init__.py")


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_person_sees_what_could_judge_even_if_a_manifest_declares_it(root: Path, cheat: str) -> None:
    before = now(root)
    CHEATS[cheat](venv_of(root))
    assert sentences(before, now(root), {}, DECLARED)  # type: ignore[arg-type]


def test_a_file_that_python_runs_at_every_start_is_called_that(root: Path) -> None:
    before = now(root)
    CHEATS["a compiled sitecustomize"](venv_of(root))
    (line,) = sentences(before, now(root))  # type: ignore[arg-type]
    assert line.endswith(
        "sitecustomize.pyc in ./.venv, which belongs to no distribution and which Python runs at every start"
    )


def test_nothing_differs_if_nothing_is_done(root: Path) -> None:
    assert now(root) == now(root)


def test_compiled_modules_and_the_notes_of_installers_don_t_count(root: Path) -> None:
    venv = venv_of(root)
    before = now(root)
    py_compile.compile(str(venv.site / "_pytest" / "runner.py"))
    (venv.site / "_pytest" / "__pycache__" / "runner.cpython-311-pytest-9.pyc.4242").write_bytes(b"x")
    info = next(venv.site.glob("flask-*.dist-info"))
    (info / "INSTALLER").write_text("uv")
    (info / "REQUESTED").write_text("")
    (info / "RECORD").write_text((info / "RECORD").read_text() + "flask/__pycache__/__init__.cpython-311.pyc,,\n")
    (venv.folder / "pyvenv.cfg").write_text((venv.folder / "pyvenv.cfg").read_text() + "command = other\nprompt = x\n")
    assert now(root) == before


def test_what_is_declared_explains_itself_and_what_it_needs(root: Path, tmp_path: Path) -> None:
    venv, wheels = venv_of(root), tmp_path / "wheels"
    wheel(wheels, "requests", "2.1", requires=("idna>=2", "chardet; extra == 'old'"))
    wheel(wheels, "idna", "3.0", points="[console_scripts]\nidna = idna:main\n")
    before = now(root)
    venv.install("requests", wheels=wheels)
    assert len(sentences(before, now(root))) == 2  # type: ignore[arg-type]
    assert sentences(before, now(root), {}, requirements("requests >= 2")) == []  # type: ignore[arg-type]
    assert sentences(before, now(root), {}, requirements("requests == 2.1")) == []  # type: ignore[arg-type]
    assert sentences(before, now(root), {}, requirements("requests == 2.0"))  # type: ignore[arg-type]
    # Agreed, and only not installed then.
    agreed = requirements("requests")
    assert sentences(before, now(root), agreed, agreed) == []  # type: ignore[arg-type]
    assert sentences(before, now(root), {}, requirements("requests @ https://example.org/x.whl"))  # type: ignore[arg-type]


def test_an_upgrade_in_a_lock_file_explains_itself(root: Path, tmp_path: Path) -> None:
    venv = venv_of(root)
    before = now(root)
    venv.install(wheel(tmp_path / "w", "flask", "3.0"), "--no-deps")
    (next(venv.site.glob("flask-3*")) / "direct_url.json").unlink(missing_ok=True)
    lock = '[[package]]\nname = "flask"\nversion = "{}"\nsource = {{ registry = "https://pypi.org/simple" }}\n'
    assert sentences(before, now(root), {"uv.lock": lock.format("2.0")}, {"uv.lock": lock.format("3.0")}) == []  # type: ignore[arg-type]
    assert sentences(before, now(root), {"uv.lock": lock.format("3.0")}, {"uv.lock": lock.format("3.0")}) == []  # type: ignore[arg-type]
    # A range that was agreed to says nothing about when.
    assert sentences(before, now(root), requirements("flask"), requirements("flask"))  # type: ignore[arg-type]
    other = {"uv.lock": lock.format("3.0").replace("pypi.org", "evil.example")}
    assert sentences(before, now(root), {"uv.lock": lock.format("2.0")}, other)  # type: ignore[arg-type]


def test_a_distribution_from_a_file_or_an_address_is_shown_although_it_is_declared(root: Path, tmp_path: Path) -> None:
    venv = venv_of(root)
    before = now(root)
    venv.install(wheel(tmp_path / "w", "requests", "2.1"))
    shown = sentences(before, now(root), {}, requirements("requests"))  # type: ignore[arg-type]
    assert len(shown) == 1
    assert "requests" in shown[0]
    assert "which comes from file:" in shown[0]


def test_other_content_in_the_same_version_is_never_explained(root: Path, tmp_path: Path) -> None:
    before = now(root)
    edited(venv_of(root).site / "flask" / "__init__.py")
    assert sentences(before, now(root), {}, requirements("flask==2.0"))  # type: ignore[arg-type]


def test_installing_the_same_again_and_removing_what_nobody_needs_is_no_difference(root: Path, tmp_path: Path) -> None:
    venv = venv_of(root)
    before = now(root)
    venv.install("--force-reinstall", "--no-deps", wheel(tmp_path / "w", "flask", "2.0", requires=("werk",)))
    (next(venv.site.glob("flask-*")) / "direct_url.json").unlink()
    assert sentences(before, now(root)) == []  # type: ignore[arg-type]
    venv.pip("uninstall", "-q", "-y", "flask")
    assert sentences(before, now(root)) == []  # type: ignore[arg-type]


def test_a_plug_in_that_is_gone_is_shown(root: Path, tmp_path: Path) -> None:
    venv = venv_of(root)
    venv.unpack(wheel(tmp_path / "w", "strict", files={"strict.py": ""}, points="[pytest11]\nstrict = strict\n"))
    before = now(root)
    (venv.site / "strict.py").unlink()
    shutil.rmtree(next(venv.site.glob("strict-*")))
    assert "strict" in sentences(before, now(root))[0]  # type: ignore[arg-type]


def test_an_environment_that_is_made_again_at_the_same_place_is_the_same(tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path))
    venv = Venv(root / ".venv")
    venv.install(wheel(root / "w", "flask"))
    before = now(root)
    shutil.rmtree(venv.folder)
    venv.make()
    venv.install(root / "w" / "flask-1.0-py3-none-any.whl")
    assert now(root) == before


@pytest.mark.parametrize("layout", ["path", "finder"])
def test_the_project_installed_as_editable_may_change_what_it_says_about_itself(root: Path, layout: str) -> None:
    venv = venv_of(root)
    install_project(venv, root, "0.1", layout)
    before = now(root)
    for path in [*venv.site.glob("*shop*")]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    install_project(venv, root, "0.2", layout, requires="requests", points="[console_scripts]\nshop = shop:main\n")
    assert sentences(before, now(root)) == []  # type: ignore[arg-type]


@pytest.mark.parametrize("layout", ["path", "finder"])
@pytest.mark.parametrize("trick", ["line", "mapping", "code", "plug-in", "module", "copy"])
def test_an_editable_installation_is_no_place_to_hide_something(root: Path, layout: str, trick: str) -> None:
    venv = venv_of(root)
    info = install_project(venv, root, "0.1", layout)
    before = now(root)
    path = next(venv.site.glob("*editable*.pth"))
    if trick == "line":
        path.write_text(path.read_text() + "import os\n")
    elif trick == "mapping":
        if layout == "finder":
            finder = next(venv.site.glob("__editable___*.py"))
            finder.write_text(finder.read_text().replace(f"{root}/src", "/elsewhere"))
        else:
            path.write_text("/elsewhere\n")
    elif trick == "code":
        if layout == "finder":
            finder = next(venv.site.glob("__editable___*.py"))
            finder.write_text(finder.read_text().replace("}\n", "}; import os\n", 1))
        else:
            path.write_text("import sys; sys.path.append('x')\n")
    elif trick == "plug-in":
        (info / "entry_points.txt").write_text(PLUGIN)
    elif trick == "module":
        (venv.site / "sitecustomize.py").write_text("")
        (info / "RECORD").write_text((info / "RECORD").read_text() + "sitecustomize.py,,\n")
    else:
        (info / "direct_url.json").write_text(json.dumps({"url": f"file://{root}", "dir_info": {}}))
    assert sentences(before, now(root), {}, requirements("shop"))  # type: ignore[arg-type]


def install_project(venv: Venv, root: Path, version: str, layout: str, requires: str = "", points: str = "") -> Path:
    """What an editable installation of the project leaves behind."""
    info = venv.site / f"shop-{version}.dist-info"
    info.mkdir()
    needs = f"Requires-Dist: {requires}\n" if requires else ""
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: shop\nVersion: {version}\n{needs}")
    (info / "direct_url.json").write_text(json.dumps({"url": f"file://{root}", "dir_info": {"editable": True}}))
    if points:
        (info / "entry_points.txt").write_text(points)
    names = [f"__editable__.shop-{version}.pth"]
    if layout == "path":
        (venv.site / names[0]).write_text(f"{root}/src\n")
    else:
        module = f"__editable___shop_{version.replace('.', '_')}_finder"
        names.append(f"{module}.py")
        (venv.site / names[0]).write_text(f"import {module}; {module}.install()")
        mapping = f"MAPPING: dict[str, str] = {{'shop': '{root}/src/shop{version}'}}\n"
        (venv.site / names[1]).write_text(f"import sys\n{mapping}\ndef install():\n    sys.path_hooks\n")
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in [*names, f"{info.name}/METADATA"]))
    return info


def test_pip_may_upgrade_itself_where_no_check_uses_it(root: Path, tmp_path: Path) -> None:
    venv = venv_of(root)
    venv.unpack(wheel(tmp_path / "w", "pip", "24.0", points="[console_scripts]\npip = pip:main\n"))
    before = now(root)
    for path in venv.site.glob("pip*"):
        shutil.rmtree(path)
    venv.unpack(wheel(tmp_path / "w", "pip", "25.0", points="[console_scripts]\npip = pip:main\n"))
    assert sentences(before, now(root)) == []  # type: ignore[arg-type]
    assert sentences(before, now(root), words=("pip", "check")) != []  # type: ignore[arg-type]


def test_names_and_files_that_can_t_be_read_are_no_obstacle(root: Path) -> None:
    venv = venv_of(root)
    (venv.site / os.fsdecode(b"odd\xff\nname.txt")).write_text("")
    (venv.site / "broken").symlink_to("nowhere")
    (venv.site / "circle").symlink_to("circle")
    os.mkfifo(venv.site / "pipe")
    before = now(root)
    assert before == now(root)
    (venv.site / "broken").unlink()
    (venv.site / "broken").symlink_to("elsewhere")
    assert "broken" in sentences(before, now(root))[0]  # type: ignore[arg-type]


@pytest.mark.powerless
def test_a_file_without_permission_is_named(root: Path) -> None:
    path = venv_of(root).site / "flask" / "__init__.py"
    before = now(root)
    path.chmod(0)
    assert "flask" in sentences(before, now(root))[0]  # type: ignore[arg-type]


def test_an_edited_module_of_the_interpreter_is_named(tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path))
    prefix = root / "python"
    library = prefix / "lib" / "python3.11"
    for name in ("os.py", "json/decoder.py", "site-packages/x.py", "lib-dynload/_json.so"):
        write(library / name, "")
    write(prefix / "bin" / "python3.11", "program")
    (prefix / "bin" / "python").symlink_to("python3.11")
    venv = root / "shop" / ".venv"
    write(venv / "pyvenv.cfg", f"home = {prefix}/bin\ninclude-system-site-packages = false\n")
    (venv / "bin").mkdir()
    (venv / "bin" / "python").symlink_to(prefix / "bin" / "python")
    write(venv / "lib" / "python3.11" / "site-packages" / "six.py", "")
    before = listing_of(root / "shop", venv)
    assert listing_of(root / "shop", venv) == before
    write(library / "site-packages" / "x.py", "not in reach")
    assert listing_of(root / "shop", venv) == before
    for name, what in (("json/decoder.py", "json"), ("os.py", "os"), ("lib-dynload/_json.so", "_json.so")):
        write(library / name, "changed")
        shown = sentences(before, listing_of(root / "shop", venv))
        assert len(shown) == 1
        assert what in shown[0]
        write(library / name, "")
    write(library / "sitecustomize.py", "")
    assert "sitecustomize" in sentences(before, listing_of(root / "shop", venv))[0]


def test_an_environment_outside_of_the_project_and_an_installation_are_found_by_their_programs(root: Path) -> None:
    place = root.parent / "elsewhere"
    shutil.move(root / ".venv", place)
    script = place / "bin" / "pytest"
    write(script, f"#!{place}/bin/python\n")
    found = listing_of(root, home=root.parent, programs=(script,))
    assert [*found.python] == ["~/elsewhere"]
    assert found.interpreters
    assert found.programs["~/elsewhere/bin/pytest"].hash == "in ~/elsewhere"
    edited(place / "lib" / f"python3.{sys.version_info[1]}" / "site-packages" / "_pytest" / "runner.py")
    assert sentences(found, listing_of(root, home=root.parent, programs=(script,)))


@pytest.mark.parametrize(("group", "asked"), [("pytest11", True), ("babel.extractors", False)])
def test_a_group_of_plug_ins_counts_if_something_installed_asks_for_it(root: Path, group: str, asked: bool) -> None:
    venv = venv_of(root)
    before = listing_of(root, venv.folder)
    points = f"[{group}]\nquick = quick\n"
    # That the plug-in names its own group means nothing.
    venv.unpack(wheel(root.parent / "w", "quick", files={"quick.py": f"GROUP = '{group}'\n"}, points=points))
    after = listing_of(root, venv.folder)
    declared = declared_changes({}, {"requirements.txt": b"quick"})

    def is_asked(where: str, group: str, own: Collection[str]) -> bool:
        assert (where, {*own}) == ("./.venv", {"quick"})
        return is_asked_for(group, [str(venv.folder)], own)

    assert is_asked_for(group, [str(venv.site)])
    found = unexplained(differences(before, after), declared, before, after, is_asked_for=is_asked)
    assert bool(found) == asked
