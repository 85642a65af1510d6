"""Runs at the start of the Python programs of a check, and puts controls into the run of pytest or unittest.

Standard library of Python 3.8 or later, and of that only what is loaded anyway: a module that is imported here would
not be found in the project later. It must never be the reason why a check fails: without controls, the gate says so.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NAME = "donewhen_controls"


class Controls:
    """What the runners of tests need, until they have taken it."""

    def __init__(self, here: str, descriptor: int, inode: int, name: str, numbered: bool) -> None:
        self.here = here
        self.name = name
        self.stream = self.load("stream")["Stream"](descriptor, inode, numbered)
        self.finder = Finder(self)

    def load(self, part: str) -> dict[str, Any]:
        path = os.path.join(self.here, part)
        try:
            # Compiled by the gate, if its Python is of the same version. All of it is loaded already.
            magic = sys.modules["_frozen_importlib_external"].MAGIC_NUMBER.hex()
            with open(path + "." + magic, "rb") as file:
                code = sys.modules["marshal"].loads(file.read())
        except (OSError, KeyError, ValueError, EOFError, TypeError):
            # Coverage and profilers of the project count files, and this is none.
            with open(path + ".py", encoding="utf-8") as text:
                code = compile(text.read(), "<string>", "exec", dont_inherit=True)
        namespace: dict[str, Any] = {"__name__": self.name, "__file__": path + ".py", "CONTROLS": self}
        exec(code, namespace)
        return namespace

    def taken(self) -> None:
        """Leave nothing where programs look for modules."""
        sys.modules.pop(_NAME, None)
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self.finder]

    def leave_environment(self) -> None:
        """Programs that tests start get the environment that they would have had."""
        parts = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        kept = [part for part in parts if part and os.path.abspath(part) != self.here]
        if kept:
            os.environ["PYTHONPATH"] = os.pathsep.join(kept)
        else:
            os.environ.pop("PYTHONPATH", None)
        own = "--require " + os.path.join(self.here, "node_modules", "node_controls.cjs")
        options = os.environ.get("NODE_OPTIONS", "")
        if options.startswith(own):
            os.environ["NODE_OPTIONS"] = options[len(own) :].strip()
            if not os.environ["NODE_OPTIONS"]:
                del os.environ["NODE_OPTIONS"]


class Finder:
    """Waits for a test runner to be imported."""

    def __init__(self, controls: Controls) -> None:
        self.controls = controls

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        kind: Any = None
        if name == "_pytest.config":
            kind = Loader
            self.controls.taken()
        elif name == "unittest.main" and _is_unittest():
            kind = UnittestLoader
        if kind is None:
            return None
        finder: Any
        for finder in list(sys.meta_path):
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                spec.loader = kind(spec.loader, self.controls)
                return spec
        return None


class Loader:
    """Adds the controls to the plugins that pytest loads always."""

    def __init__(self, loader: Any, controls: Controls) -> None:
        self.loader = loader
        self.controls = controls

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)

    def create_module(self, spec: Any) -> Any:
        return self.loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__loader__ = module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        controls = self.controls

        def pytest_configure(config: Any) -> None:
            # Not earlier: pytest itself is not imported completely yet.
            try:
                controls.load("pytest_controls")["configure"](config)
            except Exception as error:
                controls.stream.send("none", "this version of pytest takes none (%s)" % type(error).__name__)

        plugin: Any = type(sys)(controls.name)
        plugin.pytest_configure = pytest_configure
        sys.modules[controls.name] = plugin
        module.default_plugins = (*module.default_plugins, controls.name)


class UnittestLoader(Loader):
    """Gives `python -m unittest` a runner that takes controls, before it loads any test."""

    def exec_module(self, module: Any) -> None:
        module.__loader__ = module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        program, controls = module.TestProgram, self.controls
        usual = program.__init__

        def with_controls(self: Any, *values: Any, **named: Any) -> None:
            program.__init__ = usual
            try:
                named.setdefault("testRunner", controls.load("unittest_report")["_Runner"])
            except Exception:  # noqa: S110
                pass
            usual(self, *values, **named)

        program.__init__ = with_controls


def _is_unittest() -> bool:
    """Whether this process is `python -m unittest`, also with other options, or under a tool that measures it."""
    words = getattr(sys, "orig_argv", [])
    places = [place for place, word in enumerate(words) if word == "unittest" and place]
    return any(words[place - 1].startswith("-") and words[place - 1].endswith("m") for place in places)


def start() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if not path or os.path.abspath(path) != here]
    with open(os.path.join(here, "channel.txt"), encoding="utf-8") as file:
        descriptor, inode, name, kind = file.read().split()
    controls = Controls(here, int(descriptor), int(inode), name, kind == "many")
    sys.modules[_NAME] = controls  # type: ignore[assignment]
    sys.meta_path.insert(0, controls.finder)


def run_other() -> None:
    """Run the module of this name that would have been run otherwise."""
    before = sys.modules.pop("sitecustomize", None)
    try:
        __import__("sitecustomize")
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        if before is not None:
            sys.modules["sitecustomize"] = before


try:
    start()
except Exception:  # noqa: S110
    pass
run_other()
