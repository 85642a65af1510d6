"""Signs in Python code that finds out whether it is tested: by its callers, by what is loaded, or by its files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from donewhen.signs.kinds import SignKind
from donewhen.signs.python_module import PythonModule
from donewhen.signs.python_reach import Finding, finding

_FRAMES = frozenset(
    (
        *("traceback.print_stack", "faulthandler.dump_traceback", "faulthandler.dump_traceback_later"),
        *("sys._getframemodulename", "gc.get_referents", "traceback.StackSummary"),
    )
)
_INTERPRETER = frozenset(
    (
        *("pdb.Pdb", "trace.Trace", "ctypes.memmove", "ctypes.memset", "ctypes.PyDLL", "ctypes.py_object.from_address"),
        *("_thread.interrupt_main", "signal.pthread_kill", "sys.gettrace", "sys.getprofile"),
    )
)
_ATTRIBUTES: dict[str, SignKind] = {
    **dict.fromkeys(
        ("settrace", "setprofile", "from_address", "syscall", "ptrace", "PyEval_SetTrace", "Py_Exit"), "interpreter"
    ),
    **dict.fromkeys(("_getframe", "_getframemodulename", "_current_frames", "findCaller"), "frames"),
}
"""Names that mean the same whatever they are taken from."""
_WORDS: dict[str, SignKind] = {
    **{name: kind for name, kind in _ATTRIBUTES.items() if name != "findCaller"},
    "f_back": "frames",
    "_exit": "exit-hooks",
}
"""Such names as texts, by which they can be reached."""
_CODE = frozenset({"__code__", "__closure__", "cell_contents", "__kwdefaults__"})
_ALL_OF = frozenset(
    (
        *("builtins.list", "builtins.tuple", "builtins.set", "builtins.frozenset", "builtins.dict", "builtins.sorted"),
        *("builtins.map", "builtins.filter", "builtins.iter", "builtins.enumerate", "builtins.len", "builtins.any"),
        *("builtins.all", "builtins.reversed", "builtins.zip", "builtins.str", "builtins.repr"),
    )
)
_TEST_FILE = re.compile(
    r"(?:^|[/\\*])(?:test_[\w*-]*|[\w*-]+_test|conftest)\.py$|(?:^|/)tests?/[\w*/-]+\.py$|^test_\*|^\*_test\b"
)
_ARGUMENTS = ("sys.argv", "sys.orig_argv")
_SEARCHES = ("startswith", "endswith", "find", "count", "index")
_TEST_WORD = re.compile(r"(?i)(?<![a-z])(?:py)?(?:unit)?test")


def watching(module: PythonModule) -> Iterator[Finding]:
    """Yield what tells a program that tests run it."""
    for node in module.nodes:
        if not isinstance(node, ast.expr | ast.stmt) or module.is_annotation(node) or not module.runs(node):
            continue
        for kind, why in _signs_of(module, node):
            yield finding(module, kind, node, why)


def _signs_of(module: PythonModule, node: ast.expr | ast.stmt) -> Iterator[tuple[SignKind, str]]:
    match node:
        case ast.Attribute(attr=attr, ctx=ast.Load()) | ast.Name(id=attr, ctx=ast.Load()):
            name = module.dotted(node)
            if name in _FRAMES:
                yield "frames", f"uses {name}"
            elif name in _INTERPRETER:
                yield "interpreter", f"uses {name}"
            elif attr in _ATTRIBUTES and isinstance(node, ast.Attribute) and _is_other(node, name):
                yield _ATTRIBUTES[attr], f"uses {attr}"
            elif attr == "__subclasses__" and isinstance(node, ast.Attribute) and _is_every_class(module, node.value):
                yield "frames", "goes through all classes"
        case ast.Assign(targets=targets):
            for target in targets:
                if isinstance(target, ast.Attribute) and target.attr in _CODE:
                    yield "patches", f"replaces {target.attr} of a function"
        case ast.Call():
            yield from _call_signs(module, node)
        case ast.Compare(left=left, comparators=others):
            yield from _asked_for_runner(module, [left, *others])
    if isinstance(node, ast.Constant | ast.BinOp | ast.JoinedStr):
        yield from _text_signs(module, node)


def _call_signs(module: PythonModule, node: ast.Call) -> Iterator[tuple[SignKind, str]]:
    name = module.dotted(node.func)
    if name in _ALL_OF and any(module.dotted(argument) == "sys.modules" for argument in node.args):
        yield "test-machinery", "goes through all loaded modules"
    elif name in ("ctypes.CDLL", "ctypes.cdll.LoadLibrary") and (not node.args or _is_none(node.args[0])):
        yield "interpreter", "reaches into the running program with ctypes"
    elif name == "warnings.catch_warnings" and any(_is_true(word, "record") for word in node.keywords):
        yield "frames", "collects warnings, which name the callers"
    elif name in ("pickle.loads", "marshal.loads") and node.args and module.text(node.args[0]) is not None:
        yield "obscured", f"hides objects in a text for {name}"
    elif name in ("runpy.run_path", "runpy.run_module"):
        yield "obscured", f"runs a file as code with {name}"
    elif (
        name == "os.close"
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and node.args[0].value not in (0, 1, 2)
    ):
        yield "interpreter", "closes an open file by its number"
    elif name == "builtins.setattr" and len(node.args) > 1 and module.text(node.args[1]) in _CODE:
        yield "patches", f"replaces {module.text(node.args[1])} of a function"
    elif isinstance(node.func, ast.Attribute) and node.func.attr in _SEARCHES:
        yield from _asked_for_runner(module, [node.func.value, *node.args])


def _text_signs(module: PythonModule, node: ast.expr) -> Iterator[tuple[SignKind, str]]:
    parent = module.parents.get(node)
    if node in module.docstrings or isinstance(parent, ast.JoinedStr | ast.FormattedValue):
        return
    if isinstance(node, ast.JoinedStr) and isinstance(first := node.values[0], ast.Constant):
        if len(node.values) > 1 and str(first.value) == "/proc/":
            yield "interpreter", "reads what the system knows about a process"
        return
    if isinstance(node, ast.Constant) and not isinstance(node.value, str):
        return
    text = module.text(node) or ""
    if text in ("/proc", "/proc/"):
        yield "interpreter", "reads what the system knows about a process"
    elif text in _WORDS and not isinstance(parent, ast.List | ast.Tuple | ast.Set | ast.Dict):
        yield _WORDS[text], f"names {text!r}"
    elif len(text) < 200 and _TEST_FILE.search(text) and not isinstance(parent, ast.Dict):
        yield "test-machinery", f"names the file of a test: {text!r}"


def _asked_for_runner(module: PythonModule, parts: list[ast.expr]) -> Iterator[tuple[SignKind, str]]:
    """What expressions are that put the arguments of the process beside a text about tests."""
    inner = [node for part in parts for node in ast.walk(part) if isinstance(node, ast.expr)]
    about = any(isinstance(node, ast.Attribute | ast.Name) and module.dotted(node) in _ARGUMENTS for node in inner)
    if about and any(_TEST_WORD.search(module.text(node) or "") for node in inner if isinstance(node, ast.Constant)):
        yield "test-machinery", "asks which program runs it"


def _is_other(node: ast.Attribute, name: str) -> bool:
    """Whether an attribute belongs to something unknown, or to a type of C, and not to the class around it."""
    is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
    return name.startswith("ctypes.") or not (name or is_own)


def _is_every_class(module: PythonModule, node: ast.expr) -> bool:
    if module.dotted(node) in ("builtins.object", "builtins.type"):
        return True
    return any(
        isinstance(part, ast.Attribute) and part.attr in ("__base__", "__bases__", "__mro__") for part in ast.walk(node)
    )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_true(keyword: ast.keyword, name: str) -> bool:
    return keyword.arg == name and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)
