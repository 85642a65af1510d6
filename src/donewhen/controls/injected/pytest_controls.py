"""A plugin of pytest that runs tests of its own between those of the project, and tells the gate how each test ended.

The controls are built like the tests beside them and take the same way through pytest, but their outcomes go to the
gate alone: reports, counters, the exit status and other plugins don't see them.
"""

from __future__ import annotations

import ast
import os
import sys

import pytest
from _pytest.fixtures import FuncFixtureInfo
from _pytest.runner import runtestprotocol  # noqa: F401 - fails here if this pytest has none

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from typing import Any

CONTROLS: Any = globals()["CONTROLS"]  # given by whoever loads this
_Draw = CONTROLS.load("stream")["Draw"]
_drawn = CONTROLS.load("bodies")["drawn"]
_KEY = "_donewhen"
_REPORTING = ("pytest_runtest_logstart", "pytest_runtest_logreport", "pytest_runtest_logfinish")
_SILENT = ("pytest_exception_interact", "pytest_warning_recorded", "pytest_warning_captured")


class _Relay:
    """The hooks of a control: plugins of the project don't get it, and what is reported about it goes to the gate."""

    def __init__(self, plugin: _Plugin) -> None:
        self._plugin = plugin

    def __getattr__(self, name: str) -> Any:
        if name in _REPORTING:
            return getattr(self._plugin, "control_" + name)
        if name in _SILENT:
            return _nothing
        manager = self._plugin.config.pluginmanager
        return manager.subset_hook_caller(name, self._plugin.others())


def _nothing(**_: Any) -> None:
    return None


class _Plugin:
    """The controls of one run, in the process that reports or in a worker."""

    def __init__(self, config: Any, seed: bytes, say: Callable[..., None]) -> None:
        self.config = config
        self.draw = _Draw(seed)
        self.worker_seed = ""
        self.say = say
        self.is_worker = hasattr(config, "workerinput")
        self.known: list[Any] = []
        self.controls: dict[str, Any] = {}
        self.waiting: list[Any] = []
        self.last: list[Any] = []
        self.raised: set[tuple[str, str]] = set()

    # Where the controls are

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_sessionstart(self) -> Iterator[None]:
        yield
        self.known = list(self.config.pluginmanager.get_plugins())
        CONTROLS.leave_environment()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> Generator[None, Any, None]:
        # The process that only directs workers has none.
        items: Any = getattr(session, "items", None)
        before = list(items or ())
        if items and not self.config.getoption("collectonly", False):
            try:
                self._place(session)
            except Exception as error:
                self.controls, self.waiting, self.last = {}, [], []
                items[:] = before
                self.say("none", "this version of pytest takes none (%s)" % type(error).__name__)
        outcome = yield
        if outcome.excinfo is None and not session.shouldfail and not session.shouldstop:
            self._run_last()
        if self.controls:
            own = {id(control) for control in self.controls.values()}
            items[:] = [item for item in items if id(item) not in own] or before

    def _run_last(self) -> None:
        """Run what is left when nothing is set up any more."""
        for control in self.waiting + self.last:
            self.config.hook.pytest_runtest_protocol(item=control, nextitem=None)

    def _place(self, session: Any) -> None:
        items = list(session.items)
        places = [place for place in range(len(items)) if self._fits(items[place], items[place - 1] if place else None)]
        kinds = sorted({_kind(items[place]) for place in places} - {""})
        if not kinds:
            self.say("none", "the run has no tests that they could be built like")
        drawn = []
        for kind in kinds:
            found = [place for place in places if _kind(items[place]) == kind]
            for must in ("fail", "pass"):
                place = self.draw.from_(found)
                control = self._control(items, items[place], kind, must)
                drawn.append((place, self.draw.below(1 << 30), control))
            # What the work changes while the tests run must not make tests pass either.
            self.last.append(self._control(items, items[self.draw.from_(found)], kind, "fail"))
        # Only now, when nothing can keep them from being run.
        for control in self.controls.values():
            self.say("control", control.nodeid, control.must)
        if self.is_worker:
            # It learns its tests one by one. The numbers of the others stay the same.
            self.waiting = [control for _, _, control in drawn]
            session.items.extend(self.waiting + self.last)
            return
        # From the end, so that the numbers of the places stay the same.
        for place, _, control in sorted(drawn, key=lambda row: row[:2], reverse=True):
            session.items.insert(place, control)

    def _fits(self, item: Any, previous: Any) -> bool:
        """Whether a test before this one sets nothing up or down that would not be anyway."""
        if not _kind(item):
            return False
        return isinstance(item.parent, pytest.Module) or previous is None or previous.parent is not item.parent

    def _control(self, items: Sequence[Any], item: Any, kind: str, must: str) -> Any:
        control = self._built(items, item, kind, must)
        control.must = must
        self.controls[control.nodeid] = control
        return control

    def _built(self, items: Sequence[Any], item: Any, kind: str, must: str) -> Any:
        module = item.getparent(pytest.Module)
        # Only those around it: there can be very many.
        place = items.index(item)
        siblings = [
            other for other in items[max(place - 50, 0) : place + 50] if other.getparent(pytest.Module) is module
        ]
        own = {name for other in self.controls.values() for name in (other.name, other.parent.name)}
        taken = own | {
            name for other in items if other.location[0] == item.location[0] for name in (other.name, other.parent.name)
        }
        taken |= set(dir(module.obj))
        names = [_function_name(other) for other in siblings if _kind(other)]
        classes = [other.parent.name for other in siblings if isinstance(other.parent, pytest.Class)]
        text, label, name = _drawn(self.draw, must, kind, names, classes, taken)
        namespace = {"__name__": module.obj.__name__, "raises": pytest.raises}
        if kind == "testcase":
            namespace["TestCase"] = sys.modules["unittest"].TestCase
        exec(self._compiled(text, module), namespace)
        info = FuncFixtureInfo(argnames=(), initialnames=(), names_closure=[], name2fixturedefs={})
        if kind == "function":
            return _quiet(pytest.Function, self).from_parent(
                module, name=name, callobj=namespace[name], fixtureinfo=info
            )
        from _pytest.unittest import TestCaseFunction, UnitTestCase

        owner = _quiet(UnitTestCase, self).from_parent(module, name=label)
        owner.obj = namespace[label]
        return _quiet(TestCaseFunction, self).from_parent(owner, name=name, fixtureinfo=info)

    def _compiled(self, text: str, module: Any) -> Any:
        tree = ast.parse(text)
        loader = type(getattr(module.obj, "__loader__", None)).__name__
        if loader == "AssertionRewritingHook":
            try:
                from _pytest.assertion.rewrite import rewrite_asserts

                rewrite_asserts(tree, text.encode(), "<string>", self.config)
            except Exception:
                tree = ast.parse(text)
        return compile(tree, "<string>", "exec", dont_inherit=True, optimize=0)

    # How they run

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> bool | None:
        if item.nodeid in self.controls and self.controls[item.nodeid] is item:
            from _pytest import runner

            runner.pytest_runtest_protocol(item, nextitem)
            return True
        if self.waiting and self.draw.below(2):
            for control in list(self.waiting):
                # Nothing has to be torn down for it that would not be anyway.
                if set(item.session._setupstate.stack) <= set(control.listchain()):
                    self.waiting.remove(control)
                    self.config.hook.pytest_runtest_protocol(item=control, nextitem=item)
        return None

    # How they ended

    def control_pytest_runtest_logstart(self, **_: Any) -> None:
        return

    def control_pytest_runtest_logfinish(self, **_: Any) -> None:
        return

    def control_pytest_runtest_logreport(self, report: Any) -> None:
        self.say("ended", str(report.nodeid), str(report.when), str(report.outcome))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        if call.excinfo is not None:
            self.raised.add((item.nodeid, call.when))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        outcome, when = report.outcome, report.when
        if report.nodeid in self.controls:
            self.control_pytest_runtest_logreport(report)
            return
        if self.raised and (report.nodeid, when) in self.raised:
            self.raised.discard((report.nodeid, when))
            if outcome == "passed":
                self.say("turned", report.nodeid)
        if (when == "call" or outcome != "passed") and not self.is_worker:
            self.say("test", report.nodeid, str(when), str(outcome))

    # What workers report

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        # All workers have the same controls, as they have the same tests.
        if not self.worker_seed:
            self.worker_seed = str(self.draw.below(1 << 60))
        node.workerinput[_KEY] = self.worker_seed

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        lines = (getattr(node, "workeroutput", None) or {}).get(_KEY)
        name = str(node.gateway.id)
        if lines is None:
            self.say("none", "a worker ended early")
            return
        for fields in lines:
            self.say(fields[0], name + "/" + fields[1], *fields[2:])

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: Any) -> Iterator[None]:
        yield
        if not self.is_worker:
            self.say("end", str(int(session.exitstatus)))

    def others(self) -> list[Any]:
        """The plugins that don't get the controls: those of the project and of installed packages."""
        found = []
        for plugin in self.config.pluginmanager.get_plugins():
            name = getattr(plugin, "__name__", None) if isinstance(plugin, type(sys)) else type(plugin).__module__
            if str(name).split(".")[0] == "_pytest":
                continue
            file = os.path.basename(str(getattr(plugin, "__file__", "") or ""))
            if plugin in self.known or file == "conftest.py":
                found.append(plugin)
        return [plugin for plugin in found if plugin is not self]


def _quiet(base: Any, plugin: _Plugin) -> Any:
    """A class of items like another one, without markers of what is around it, and with hooks of its own."""
    relay = _Relay(plugin)
    members = {
        "ihook": property(lambda self: relay),
        "iter_markers_with_node": lambda self, name=None: iter(()),
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
    }
    return type(base.__name__, (base,), members)


def _kind(item: Any) -> str:
    """What a control beside this test looks like; empty if there is none that is like it."""
    if not isinstance(item, pytest.Function):
        return ""
    if type(item).__name__ == "TestCaseFunction":
        return "testcase"
    return "function" if type(item.getparent(pytest.Module)).__name__ == "Module" else ""


def _function_name(item: Any) -> str:
    return str(getattr(item, "originalname", None) or item.name.split("[")[0])


def configure(config: Any) -> None:
    if getattr(config, "workerinput", None) is not None:
        seed = config.workerinput.pop(_KEY, None)
        if seed is None:
            return
        lines: list[tuple[str, ...]] = []
        config.workeroutput[_KEY] = lines
        config.pluginmanager.register(_Plugin(config, seed.encode(), lambda *fields: lines.append(fields)))
        return
    stream = CONTROLS.stream
    if not stream.claim():
        return
    stream.send("start", "pytest " + str(getattr(pytest, "__version__", "")))
    config.pluginmanager.register(_Plugin(config, stream.seed(), stream.send))
