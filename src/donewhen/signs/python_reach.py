"""Signs in Python code that reaches for what tests it: frameworks, callers, the end of the process, others' modules."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from donewhen.signs.kinds import SignKind
from donewhen.signs.python_module import Function, PythonModule
from donewhen.signs.test_words import is_framework, names_framework, names_report, speaks_of_tests


class Finding(NamedTuple):
    """A sign in one file, before it is known whether its lines are new."""

    kind: SignKind
    line: int
    lines: frozenset[int]
    why: str


_FRAMES = frozenset(
    (
        *("sys._getframe", "sys._current_frames", "inspect.stack", "inspect.getouterframes"),
        *("inspect.trace", "traceback.extract_stack", "traceback.walk_stack", "gc.get_objects"),
        *("gc.get_referrers", "inspect.getinnerframes", "traceback.format_stack"),
        *("sys._current_exceptions",),
    )
)
_FRAME_ATTRIBUTES = frozenset({"f_back"})
"""Only a caller: what is in the frames of an error, a program may show."""
_INTERPRETER = frozenset(
    (
        *("sys.settrace", "sys.setprofile", "threading.settrace", "threading.setprofile"),
        *("threading.settrace_all_threads", "threading.setprofile_all_threads", "sys.addaudithook"),
        *("ctypes.pythonapi", "sys.monitoring", "os.closerange", "bdb.Bdb", "faulthandler.register"),
    )
)
_ENDS = frozenset({"os._exit", "os.abort", "os.kill", "os.killpg", "signal.raise_signal", "os.execv", "os.execve"})
_EXITS = frozenset({"sys.exit", "builtins.exit", "builtins.quit", "builtins.SystemExit"})
_STARTS = ("subprocess.", "os.system", "os.popen", "os.fork", "os.posix_spawn", "os.spawn", "multiprocessing.Process")
_HOOKS = frozenset({"atexit.register", "signal.signal", "weakref.finalize", "threading._register_atexit"})
_HOOK_TARGETS = frozenset({"sys.excepthook", "sys.unraisablehook", "threading.excepthook"})
_WRITES = frozenset(
    ("write_text", "write_bytes", "rename", "replace", "truncate", "symlink_to", "hardlink_to", "writelines", "touch")
)
"""Methods that write a file; ``replace`` only with one argument, because texts have it, too."""
_RUNS_TEXT = frozenset({"builtins.exec", "builtins.eval", "marshal.loads", "types.CodeType", "types.FunctionType"})
_STREAMS = frozenset(
    (
        *("sys.stdin", "sys.stdout", "sys.stderr", "sys.path", "sys.ps1", "sys.ps2", "sys.argv"),
        *("sys.displayhook", "sys.tracebacklimit", "sys.dont_write_bytecode", "builtins._"),
    )
)
"""What programs replace for themselves."""
_IMPORTERS = ("sys.meta_path", "sys.path_hooks", "sys.path_importer_cache")
_PROC = re.compile(
    r"^/(?:proc/(?:self|\d+|curproc|thread-self)(?:/(?:fd|fdinfo|cmdline|environ|maps|mem|map_files|exe|cwd|root|task)\b|/?$)"
    r"|dev/fd)|^/dev/mem$"
)
_TEMPORARY = frozenset({"tempfile.gettempdir", "tempfile.gettempdirb", "tempfile.tempdir"})


def reaching(module: PythonModule, owns: Callable[[str], bool], *, is_program: bool) -> Iterator[Finding]:
    """Yield what reaches for test machinery. ``owns`` says whether a top-level module belongs to the project."""
    for node in module.nodes:
        if not isinstance(node, ast.expr | ast.stmt) or module.is_annotation(node):
            continue
        for kind, why in _signs_of(module, node, owns, is_program):
            if module.runs(node):
                # What a hook does is in the functions that it names.
                bodies = hook_bodies(module, node) if kind == "exit-hooks" and " with code " in why else ()
                yield finding(module, kind, node, why, *bodies)


def finding(module: PythonModule, kind: SignKind, node: ast.AST, why: str, *more: ast.AST) -> Finding:
    """A finding about the whole statement of a node; of a block, only its head."""
    statement = node
    while not isinstance(statement, ast.stmt) and statement in module.parents:
        statement = module.parents[statement]
    lines: set[int] = set()
    if isinstance(statement, ast.stmt):
        end = statement.end_lineno or statement.lineno
        body = getattr(statement, "body", None)
        if isinstance(body, list) and body and not isinstance(node, Function | ast.ClassDef):
            # The statement is a block: only its head is meant, or else the line of the node.
            end = max(statement.lineno, min(end, body[0].lineno - 1))
            first, last = getattr(node, "lineno", statement.lineno), getattr(node, "end_lineno", end)
            lines |= {*range(first, last + 1)}
        else:
            lines |= {*range(statement.lineno, end + 1)}
    for other in more:
        lines |= {*range(getattr(other, "lineno", 1), (getattr(other, "end_lineno", None) or 1) + 1)}
    line = getattr(node, "lineno", min(lines, default=1))
    return Finding(kind, line, frozenset(lines or {line}), why)


def _signs_of(
    module: PythonModule, node: ast.AST, owns: Callable[[str], bool], is_program: bool
) -> Iterator[tuple[SignKind, str]]:
    match node:
        case ast.Import(names=names):
            for alias in names:
                if is_framework(alias.name) and not owns(alias.name.partition(".")[0]):
                    yield "test-machinery", f"imports {alias.name}"
        case ast.ImportFrom(module=str(name), level=0) if is_framework(name) and not owns(name.partition(".")[0]):
            yield "test-machinery", f"imports {name}"
        case ast.Call():
            yield from _call_signs(module, node, is_program)
        case ast.Assign(targets=targets):
            yield from (sign for target in targets for sign in _target_signs(module, target, owns, node.value))
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target, value=ast.expr()):
            yield from _target_signs(module, target, owns, node.value)
        case ast.Delete(targets=targets):
            yield from (sign for target in targets for sign in _target_signs(module, target, owns, None))
        case ast.FunctionDef(decorator_list=decorators):
            for decorator in decorators:
                called = decorator.func if isinstance(decorator, ast.Call) else decorator
                if module.dotted(called) in _HOOKS and (why := hook_effect(module, [], node)):
                    yield "exit-hooks", f"{module.dotted(called)} with code that {why}"
        case ast.Raise(exc=exc) if _is_exit(module, exc) and module.at_import(node) and not is_program:
            yield "at-import", "ends the process when it is imported"
        case ast.For(iter=loop) if _is_modules(module, loop):
            yield "test-machinery", "goes through all loaded modules"
    if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
        yield from _name_signs(module, node)
    if isinstance(node, ast.Constant | ast.BinOp | ast.Call | ast.JoinedStr | ast.Subscript):
        yield from _text_signs(module, node)
    if isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp):
        for part in node.generators:
            if _is_modules(module, part.iter):
                yield "test-machinery", "goes through all loaded modules"


def _name_signs(module: PythonModule, node: ast.Attribute | ast.Name) -> Iterator[tuple[SignKind, str]]:
    if isinstance(node, ast.Attribute) and node.attr in _FRAME_ATTRIBUTES:
        yield "frames", f"reads {node.attr} of a frame"
    name = module.dotted(node)
    if not name:
        return
    if name in _FRAMES and not _asks_for_module_name(module, node):
        yield "frames", f"uses {name}"
    elif name in _INTERPRETER:
        yield "interpreter", f"uses {name}"
    elif name in ("os._exit", "os.abort") and not _is_in_child(module, node):
        yield "exit-hooks", f"uses {name}"
    elif _is_reached(module, node, name):
        yield "test-machinery", f"uses {name}"


def _is_reached(module: PythonModule, node: ast.Attribute | ast.Name, name: str) -> bool:
    """Whether a test framework was reached otherwise than by an import, which is a sign itself."""
    whole = isinstance(node, ast.Attribute) and not isinstance(module.parents.get(node), ast.Attribute)
    return whole and is_framework(name) and _root_name(node) not in module.imports


def _call_signs(module: PythonModule, node: ast.Call, is_program: bool) -> Iterator[tuple[SignKind, str]]:
    name = module.dotted(node.func)
    if not isinstance(node.func, ast.Name | ast.Attribute):
        # Reached by getattr, a loaded module, or a computed name.
        if name in _FRAMES:
            yield "frames", f"uses {name}"
        elif name in _INTERPRETER:
            yield "interpreter", f"uses {name}"
        elif name in _ENDS:
            yield "exit-hooks", f"uses {name}"
    if name in _RUNS_TEXT:
        yield "obscured", f"runs text as code with {name.removeprefix('builtins.')}"
    if name in _HOOKS:
        why = hook_effect(module, [*node.args, *(keyword.value for keyword in node.keywords)])
        if why:
            yield "exit-hooks", f"{name} with code that {why}"
    if name in ("builtins.setattr", "builtins.delattr") and node.args:
        yield from _setattr_signs(module, node)
    if name.startswith(_IMPORTERS):
        yield "patches", f"changes how modules are imported: {name}"
    if name in ("os.write", "os.dup2", "os.pwrite", "os.writev") and any(
        _is_foreign_descriptor(module, arg) for arg in node.args[:2]
    ):
        yield "interpreter", "writes to an open file by its number"
    if name == "builtins.getattr" and len(node.args) > 1 and module.text(node.args[1]) in _FRAME_ATTRIBUTES:
        yield "frames", "reads the caller of a frame"
    if name in ("os.fdopen", "builtins.open") and node.args and _is_foreign_descriptor(module, node.args[0]):
        yield "interpreter", "opens a file by its number"
    if _searches_temporary(module, node):
        yield "test-machinery", "searches the folder of temporary files"
    if is_program or not module.at_import(node):
        return
    if name in _EXITS:
        yield "at-import", "ends the process when it is imported"
    elif name.startswith(_STARTS) and name != "subprocess.list2cmdline" and not name[-1:].isupper():
        yield "at-import", f"starts a program when it is imported: {name}"
    elif _writes(module, node):
        yield "at-import", "writes a file when it is imported"
    elif isinstance(node.func, ast.Attribute) and node.func.attr == "start" and _is_thread(module, node.func.value):
        yield "at-import", "starts a thread or process when it is imported"


def hook_effect(module: PythonModule, parts: Collection[ast.expr], *bodies: Function) -> str:
    """What the function of a hook does that its own end does not need; empty if nothing is known."""
    todo: list[ast.AST] = [*parts, *(statement for body in bodies for statement in body.body)]
    seen: set[ast.AST] = set()
    while todo:
        part = todo.pop()
        if part in seen:
            continue
        seen.add(part)
        for node in ast.walk(part):
            name = module.dotted(node) if isinstance(node, ast.Name | ast.Attribute) else ""
            if name in ("os._exit", "os.abort") or name in _RUNS_TEXT:
                return f"uses {name.removeprefix('builtins.')}"
            if is_framework(name) or names_report(module.text(node) or "" if isinstance(node, ast.expr) else ""):
                return "reaches for a test framework or its report"
            if isinstance(node, ast.Call) and _writes(module, node):
                return "writes a file"
            called = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
            todo += [found for found in module.defined.get(called, ()) if isinstance(found, Function)]
    for part in parts:
        if isinstance(part, ast.Attribute) and part.attr in _WRITES - {"replace"}:
            return "writes a file"
    return ""


def hook_bodies(module: PythonModule, node: ast.AST) -> list[ast.AST]:
    """The functions of the module that a hook names."""
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    names |= {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    return [found for name in names for found in module.defined.get(name, ()) if isinstance(found, Function)]


def _target_signs(
    module: PythonModule, target: ast.expr, owns: Callable[[str], bool], value: ast.expr | None
) -> Iterator[tuple[SignKind, str]]:
    if isinstance(target, ast.Tuple | ast.List):
        for item in target.elts:
            yield from _target_signs(module, item, owns, None)
        return
    if isinstance(target, ast.Subscript):
        base = module.dotted(target.value)
        if base == "sys.modules":
            key = module.text(target.slice)
            if key is not None and not owns(key.partition(".")[0]) and not key.startswith("__"):
                yield "patches", f"replaces the module {key}"
        elif base.startswith(_IMPORTERS):
            yield "patches", f"changes how modules are imported: {base}"
        elif base.endswith(".__dict__") or base == "builtins":
            key = module.text(target.slice) or "a name that is not known"
            yield from _patch(f"{base.removesuffix('.__dict__')}.{key}", owns)
        return
    if not isinstance(target, ast.Attribute):
        return
    name = module.dotted(target)
    if name in _HOOK_TARGETS:
        why = "" if value is None else hook_effect(module, [value])
        if why:
            yield "exit-hooks", f"{name} with code that {why}"
    elif name:
        yield from _patch(name, owns)
    elif target.attr == "__class__" and _root_name(target) not in ("self", "cls"):
        yield "patches", "gives an object another class"


def _patch(name: str, owns: Callable[[str], bool]) -> Iterator[tuple[SignKind, str]]:
    top = name.partition(".")[0]
    if (
        not top
        or owns(top)
        or name.startswith(("sys.last_", *(f"{stream}." for stream in _STREAMS)))
        or name in _STREAMS
    ):
        return
    yield "patches", f"replaces {name.removeprefix('builtins.')}, which belongs to another module"


def _setattr_signs(module: PythonModule, node: ast.Call) -> Iterator[tuple[SignKind, str]]:
    target = node.args[0]
    base = module.dotted(target)
    if base and not base.startswith(".") and not base.startswith("builtins.__import__"):
        name = module.text(node.args[1]) if len(node.args) > 1 else None
        if f"{base}.{name}" not in _STREAMS:
            yield "patches", f"sets an attribute of {base}, which belongs to another module"


def _text_signs(module: PythonModule, node: ast.expr) -> Iterator[tuple[SignKind, str]]:
    parent = module.parents.get(node)
    if node in module.docstrings or isinstance(parent, ast.JoinedStr | ast.FormattedValue):
        return
    if isinstance(parent, ast.expr) and not isinstance(node, ast.Constant) and module.text(parent) is not None:
        return
    text = module.text(node)
    if not text or len(text) > 200 or (isinstance(node, ast.Constant) and not isinstance(node.value, str | bytes)):
        return
    if _PROC.match(text):
        yield "interpreter", f"names {text}"
    if names_framework(text) or names_report(text):
        yield "test-machinery", f"names {text!r}"
    elif speaks_of_tests(text) and _is_about_environment(module, node):
        yield "test-machinery", f"asks for the variable {text}"


def _is_about_environment(module: PythonModule, node: ast.AST) -> bool:
    """Whether a text is compared with, or used as, the name of a variable of the environment."""
    for parent, _ in module.ancestors(node):
        if isinstance(parent, Function | ast.Lambda | ast.ClassDef | ast.Module | ast.Dict):
            return False
        around: ast.AST = parent.iter if isinstance(parent, ast.For) else parent
        if isinstance(around, ast.stmt) and hasattr(around, "body"):
            around = getattr(around, "test", None) or ast.Pass()
        if any(
            module.dotted(part) in ("os.environ", "os.environb", "os.getenv", "os.getenvb")
            for part in ast.walk(around)
            if isinstance(part, ast.Attribute | ast.Name)
        ):
            return True
    return False


def _is_modules(module: PythonModule, node: ast.expr) -> bool:
    """Whether an expression is all loaded modules."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute | ast.Name) and module.dotted(part) == "sys.modules":
            parent = module.parents.get(part)
            if isinstance(parent, ast.Subscript):
                return False
            return not (isinstance(parent, ast.Attribute) and parent.attr in ("get", "pop", "setdefault"))
    return False


def _asks_for_module_name(module: PythonModule, node: ast.AST) -> bool:
    """Whether only the name of the calling module is asked for, as factories of classes do, or the own frame."""
    call = module.parents.get(node)
    if isinstance(call, ast.Call) and call.func is node and not call.args and module.dotted(node) == "sys._getframe":
        return True
    attribute = module.parents.get(call) if isinstance(call, ast.Call) else None
    if not isinstance(attribute, ast.Attribute) or attribute.attr != "f_globals":
        return False
    use = module.parents.get(attribute)
    if isinstance(use, ast.Subscript):
        return module.text(use.slice) == "__name__"
    called = module.parents.get(use) if isinstance(use, ast.Attribute) and use.attr == "get" else None
    return isinstance(called, ast.Call) and bool(called.args) and module.text(called.args[0]) == "__name__"


def _is_in_child(module: PythonModule, node: ast.AST) -> bool:
    """Whether code is in a function that forks: there, only the child ends."""
    function = module.function_of(node)
    return function is not None and any(
        module.dotted(part) in ("os.fork", "os.forkpty", "pty.fork")
        for part in ast.walk(function)
        if isinstance(part, ast.Attribute | ast.Name)
    )


def _is_exit(module: PythonModule, node: ast.expr | None) -> bool:
    return module.dotted(node.func if isinstance(node, ast.Call) else node) == "builtins.SystemExit"


def _writes(module: PythonModule, node: ast.Call) -> bool:
    """Whether a call writes to a file by its name."""
    name = module.dotted(node.func)
    attr = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if name in ("builtins.open", "io.open", "os.fdopen", "codecs.open") or attr == "open":
        at = 0 if attr == "open" and name not in ("io.open", "codecs.open") else 1
        modes = [*node.args[at : at + 1], *(keyword.value for keyword in node.keywords if keyword.arg == "mode")]
        return any(set("wax+") & set(module.text(mode) or "") for mode in modes)
    if name in ("os.replace", "os.rename", "shutil.move", "shutil.copy", "shutil.copyfile", "os.truncate", "json.dump"):
        return True
    return attr in _WRITES and not name.startswith("builtins.") and (attr != "replace" or len(node.args) == 1)


def _is_thread(module: PythonModule, node: ast.expr) -> bool:
    value = module.assigned.get(node.id) if isinstance(node, ast.Name) else node
    return isinstance(value, ast.Call) and module.dotted(value.func).rpartition(".")[2] in (
        "Thread",
        "Process",
        "Timer",
    )


def _is_foreign_descriptor(module: PythonModule, node: ast.expr) -> bool:
    """Whether a number names an open file that the code has not opened."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int) and not isinstance(node.value, bool) and node.value > 2
    if not isinstance(node, ast.Name):
        return False
    return any(
        isinstance(loop, ast.For)
        and isinstance(loop.target, ast.Name)
        and loop.target.id == node.id
        and isinstance(loop.iter, ast.Call)
        and module.dotted(loop.iter.func) == "builtins.range"
        for loop, _ in module.ancestors(node)
    )


def _searches_temporary(module: PythonModule, node: ast.Call) -> bool:
    """Whether a call looks for files in the folder of all temporary files."""
    name = module.dotted(node.func)
    attr = node.func.attr if isinstance(node.func, ast.Attribute) else name
    if attr not in ("glob", "rglob", "iglob", "walk", "iterdir", "listdir", "scandir"):
        return False
    return any(
        (isinstance(part, ast.Attribute | ast.Name) and module.dotted(part) in _TEMPORARY)
        or (
            isinstance(part, ast.Constant) and isinstance(part.value, str) and re.match(r"/(var/)?tmp(/|$)", part.value)
        )
        for part in ast.walk(node)
    )


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


def _root_name(node: ast.expr) -> str:
    root = _root(node)
    return root.id if isinstance(root, ast.Name) else ""
