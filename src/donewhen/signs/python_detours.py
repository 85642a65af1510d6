"""Signs in Python code that gets by a detour at what tests it: by values, records, collections and names of hooks."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence

from donewhen.signs.kinds import SignKind
from donewhen.signs.python_hidden_imports import IMPORTS, is_hidden, is_loaded_by_name
from donewhen.signs.python_module import Function, PythonModule
from donewhen.signs.python_reach import Finding, finding

_ENDS = frozenset({"sys.exit", "builtins.exit", "builtins.quit", "os._exit", "os.abort", "os.kill"})
_SHOWN = frozenset(("tracemalloc.get_object_traceback", "tracemalloc.take_snapshot", "linecache.cache"))
"""What says where code was called from, or what its source says."""
_OTHERS = frozenset(("psutil.process_iter", "psutil.pids", "psutil.pid_exists", "atexit._ncallbacks"))
_PROCESS_LISTS = frozenset({"ps", "pgrep", "pstree", "lsof", "tasklist", "wmic"})
_TASK_FRAMES = ("cr_frame", "ag_frame", "get_stack", "get_coro")
_RECORDED = frozenset({"pathname", "lineno", "funcName"})
_TWINS = ("stdin", "stdout", "stderr", "breakpointhook", "unraisablehook", "displayhook", "excepthook")
_CHANGES = frozenset({"update", "setdefault", "__setitem__", "pop", "popitem", "clear", "__delitem__", "__ior__"})
_ERRORS = frozenset({"builtins.BaseException", "builtins.Exception", "builtins.AssertionError"})
_HOOK = re.compile(
    r"pytest_\w+|(?:setup|teardown)_(?:module|function|class|method)|setUpModule|tearDownModule|load_tests"
)
_SETTING = re.compile(r"pytestmark|pytest_plugins|collect_ignore(?:_glob)?")
_PREFIX = re.compile(r"(?i)test_?")
_SOURCES = re.compile(r"^(?:.*/)?\*+(?:/\*+)*\.pyw?$")
_READS = ("ast.parse", "tokenize.", "builtins.open", "io.open", "linecache.")
_OPTIONS = frozenset({"PYTHONOPTIMIZE", "PYTHONBREAKPOINT", "PYTHONSTARTUP", "PYTHONINSPECT"})
_SOCKETS = ("socket.socket", "socket.fromfd", "socket.socketpair")
_BY_NUMBER = frozenset(
    ("os.fstat", "os.read", "os.dup", "os.isatty", "os.lseek", "os.ftruncate", "os.set_inheritable", "os.close")
)


def detours(module: PythonModule, owns: Callable[[str], bool]) -> Iterator[Finding]:
    """Yield what gets at tests by a detour. ``owns`` says whether a top-level module belongs to the project."""
    for node in module.nodes:
        if not isinstance(node, ast.expr | ast.stmt) or module.is_annotation(node):
            continue
        for kind, why in _signs_of(module, node, owns):
            if module.runs(node):
                yield finding(module, kind, node, why)
    yield from _records(module)


def _signs_of(
    module: PythonModule, node: ast.expr | ast.stmt, owns: Callable[[str], bool]
) -> Iterator[tuple[SignKind, str]]:
    match node:
        case ast.Attribute(ctx=ast.Load()) | ast.Name(ctx=ast.Load()):
            yield from _name_signs(module, node)
        case ast.Call():
            yield from _call_signs(module, node, owns)
        case ast.Compare(left=left, comparators=[right]):
            names = {module.dotted(left), module.dotted(right)}
            if any(names == {f"sys.{name}", f"sys.__{name}__"} for name in _TWINS):
                yield "test-machinery", "asks whether something has replaced what belongs to the interpreter"
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            if isinstance(module.parents.get(node), ast.Module) and _HOOK.fullmatch(name):
                yield "test-machinery", f"defines {name}, which test frameworks call"
            if _changes_tests(module, node):
                yield "patches", "changes what is called like a test"
            if _reads_interrupted(module, node):
                yield "frames", "reads the frame that a signal has interrupted"
        case ast.Assign(targets=[ast.Attribute(value=owner)]) if is_loaded_by_name(module, owner):
            yield "patches", "replaces a part of a module whose name is not known"
        case ast.Assign(targets=[ast.Name(id=name)]):
            if isinstance(module.parents.get(node), ast.Module) and _SETTING.fullmatch(name):
                yield "test-machinery", f"defines {name}, which test frameworks read"
        case (
            ast.Assign(targets=[ast.Subscript(value=place, slice=key)])
            | ast.AugAssign(target=ast.Subscript(place, key))
        ):
            if isinstance(place, ast.Attribute) and place.attr == "__globals__":
                yield "patches", "replaces a name in the module of a function"
            elif module.dotted(place) == "os.environ" and module.text(key) in _OPTIONS:
                yield "patches", f"sets {module.text(key)} for other programs"
    if isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp) and any(
        module.dotted(part) == "os.environ" for loop in node.generators for part in ast.walk(loop.iter)
    ):
        called = [module.dotted(part.func) for part in ast.walk(node) if isinstance(part, ast.Call)]
        if any(name.startswith(("hashlib.", "zlib.", "binascii.", "builtins.hash")) for name in called):
            yield "obscured", "hides which variable it looks for"


def _name_signs(module: PythonModule, node: ast.Attribute | ast.Name) -> Iterator[tuple[SignKind, str]]:
    name = module.dotted(node)
    if name in _ENDS and _is_value(module, node):
        yield "exit-hooks", f"hands on {name.removeprefix('builtins.')} without calling it"
    elif name == "builtins.SystemExit" and _is_method_value(module, node):
        yield "exit-hooks", "hands on SystemExit without raising it"
    elif name in _SHOWN:
        yield "frames", f"uses {name}"
    elif name in _OTHERS:
        yield "interpreter", f"uses {name}"
    elif isinstance(node, ast.Attribute) and node.attr in _TASK_FRAMES:
        owner = module.parents.get(node)
        of_task = node.attr.startswith("get_") and isinstance(owner, ast.Call) and "asyncio" in _top_imports(module)
        if of_task or (not node.attr.startswith("get_") and isinstance(owner, ast.Attribute)):
            yield "frames", f"reads {node.attr} of a task or coroutine"
    elif isinstance(node, ast.Attribute) and node.attr in ("__name__", "__module__", "__qualname__"):
        yield from _stream_class(module, node)
    if name in ("sys.meta_path", "sys.path_hooks"):
        statement = next((parent for parent, _ in module.ancestors(node) if isinstance(parent, ast.stmt)), None)
        head = statement.iter if isinstance(statement, ast.For) else statement
        parts = [] if head is None else [*ast.walk(head)]
        if any(
            isinstance(part, ast.Attribute) and part.attr in ("__module__", "__name__", "__class__") for part in parts
        ):
            yield "test-machinery", "looks at who imports modules"
    if name in ("sys.__dict__", "builtins.vars(sys)") and not isinstance(module.parents.get(node), ast.Subscript):
        yield "test-machinery", "goes through everything in sys"


def _call_signs(module: PythonModule, node: ast.Call, owns: Callable[[str], bool]) -> Iterator[tuple[SignKind, str]]:
    name = module.dotted(node.func)
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    names = [module.dotted(argument) for argument in arguments]
    if "sys.modules" in names and name not in ("builtins.id", "builtins.isinstance", "builtins.hasattr"):
        yield "test-machinery", "hands on all loaded modules"
    elif name == "builtins.vars" and names == ["sys"] and not isinstance(module.parents.get(node), ast.Subscript):
        yield "test-machinery", "goes through everything in sys"
    elif name == "operator.attrgetter" and any(module.text(part) in ("modules", "__globals__") for part in node.args):
        yield "test-machinery", "gets at modules by the name of an attribute"
    if isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES:
        yield from _changed(module, node.func, owns)
    if name == "builtins.setattr" and node.args and isinstance(node.args[0], ast.Name):
        yield from _looped(module, node.args[0], owns)
    if name in ("builtins.setattr", "builtins.delattr") and node.args and is_loaded_by_name(module, node.args[0]):
        yield "patches", "sets an attribute of a module whose name is not known"
    if name in IMPORTS and node.args and is_hidden(module, node.args[0]):
        yield "obscured", "imports a module whose name is in another file, or encoded"
    if name.removesuffix(".__subclasses__") in _ERRORS and name.endswith(".__subclasses__"):
        yield "frames", "goes through all classes of errors"
    if _is_by_number(module, node, name):
        yield "interpreter", "looks at open files by their numbers"
    if name in ("builtins.getattr", "builtins.dir", "inspect.getmembers") and _is_frame(module, node.args[:1]):
        yield from _of_frame(module, node, name)
    if name.startswith(("subprocess.", "os.system", "os.popen")) and _lists_processes(module, node):
        yield "interpreter", "looks at other processes"
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("glob", "rglob", "iglob", "fnmatch", "filter"):
        texts = [module.text(argument) for argument in node.args]
        if any(text is not None and _SOURCES.match(text) for text in texts) and _reads_sources(module):
            yield "test-machinery", "reads all Python files, and the tests are among them"
    if name.startswith("os.exec") and module.at_import(node):
        yield "at-import", f"starts a program when it is imported: {name}"


def _is_value(module: PythonModule, node: ast.expr) -> bool:
    """Whether what ends the process is handed on, so that somebody else's code calls it."""
    parent = module.parents.get(node)
    if isinstance(parent, ast.Attribute | ast.Compare):
        return False
    if isinstance(parent, ast.Call) and parent.func is node:
        return False
    if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name):
        # Another name for it: what is done with that one counts.
        return not isinstance(module.parents.get(parent), ast.Module | Function)
    return not (isinstance(parent, ast.keyword) and parent.arg in ("target", "command", "callback"))


def _is_method_value(module: PythonModule, node: ast.expr) -> bool:
    match module.parents.get(node):
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name.startswith("__") and name.endswith("__")
        case ast.Dict(keys=keys, values=values):
            key = module.text(keys[values.index(node)]) or ""
            return key.startswith("__") and key.endswith("__")
    return False


def _stream_class(module: PythonModule, node: ast.Attribute) -> Iterator[tuple[SignKind, str]]:
    """Signs of code that asks of which class a standard stream is."""
    match node.value:
        case ast.Call(args=[stream]) if module.dotted(node.value.func) == "builtins.type":
            about = module.dotted(stream)
        case ast.Attribute(value=stream, attr="__class__"):
            about = module.dotted(stream)
        case _:
            return
    if about in ("sys.stdin", "sys.stdout", "sys.stderr"):
        yield "test-machinery", f"asks what has replaced {about}"


def _changed(
    module: PythonModule, method: ast.Attribute, owns: Callable[[str], bool]
) -> Iterator[tuple[SignKind, str]]:
    """Signs of a dictionary of names that is changed by a method."""
    base = module.dotted(method.value)
    if isinstance(method.value, ast.Attribute) and method.value.attr == "__globals__":
        yield "patches", "replaces a name in the module of a function"
    elif base == "sys.modules" and method.attr in ("update", "__setitem__", "clear", "__ior__"):
        yield "patches", "replaces loaded modules"
    elif base.endswith(".__dict__") or base == "builtins":
        owner = base.removesuffix(".__dict__")
        if owner and not owner.startswith(".") and not owns(owner.partition(".")[0]):
            yield "patches", f"changes the names of {owner}, which belongs to another module"


def _looped(module: PythonModule, target: ast.Name, owns: Callable[[str], bool]) -> Iterator[tuple[SignKind, str]]:
    """Signs of a loop that sets attributes of modules."""
    for parent, _ in module.ancestors(target):
        if isinstance(parent, ast.For) and isinstance(parent.target, ast.Name) and parent.target.id == target.id:
            items = parent.iter.elts if isinstance(parent.iter, ast.Tuple | ast.List | ast.Set) else []
            names = [module.dotted(item) for item in items]
            if any(name and not name.startswith(".") and not owns(name.partition(".")[0]) for name in names):
                yield "patches", "sets attributes of other modules in a loop"


def _is_by_number(module: PythonModule, node: ast.Call, name: str) -> bool:
    if name in _SOCKETS:
        given = [keyword.value for keyword in node.keywords if keyword.arg == "fileno"]
        return any(_is_counted(module, value) for value in given) or (
            name == "socket.fromfd" and bool(node.args) and _is_counted(module, node.args[0])
        )
    return name in _BY_NUMBER and bool(node.args) and _is_counted(module, node.args[0])


def _is_counted(module: PythonModule, node: ast.expr) -> bool:
    """Whether a number is a constant, or counted through."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int) and not isinstance(node.value, bool) and node.value > 2
    if not isinstance(node, ast.Name):
        return False
    loops: list[ast.For | ast.comprehension] = []
    for parent, _ in module.ancestors(node):
        if isinstance(parent, ast.For):
            loops.append(parent)
        loops += getattr(parent, "generators", [])
    return any(
        isinstance(loop.target, ast.Name)
        and loop.target.id == node.id
        and isinstance(loop.iter, ast.Call)
        and module.dotted(loop.iter.func) == "builtins.range"
        for loop in loops
    )


def _of_frame(module: PythonModule, node: ast.Call, name: str) -> Iterator[tuple[SignKind, str]]:
    if name != "builtins.getattr" or (len(node.args) > 1 and module.text(node.args[1]) is None):
        yield "frames", "reads whatever a frame has"


def _is_frame(module: PythonModule, arguments: Sequence[ast.expr]) -> bool:
    values = [
        value for node in arguments for value in (module.values_of(node) if isinstance(node, ast.Name) else [node])
    ]
    return any(
        isinstance(value, ast.Call) and module.dotted(value.func) in ("inspect.currentframe", "sys._getframe")
        for value in values
    )


def _lists_processes(module: PythonModule, node: ast.Call) -> bool:
    for argument in node.args[:1]:
        first = argument.elts[0] if isinstance(argument, ast.List | ast.Tuple) and argument.elts else argument
        words = (module.text(first) or "").split()
        if words and words[0].rpartition("/")[2] in _PROCESS_LISTS:
            return True
    return False


def _reads_sources(module: PythonModule) -> bool:
    return any(
        isinstance(part, ast.Call)
        and (
            module.dotted(part.func).startswith(_READS)
            or (isinstance(part.func, ast.Attribute) and part.func.attr in ("read_text", "read_bytes", "open"))
        )
        for part in module.nodes
    )


def _changes_tests(module: PythonModule, function: Function) -> bool:
    """Whether a function looks for names that begin like those of tests, and replaces something."""
    prefixed = changed = False
    for part in ast.walk(function):
        match part:
            case ast.Call(func=ast.Attribute(attr="startswith"), args=[argument, *_]):
                prefixed |= _PREFIX.fullmatch(module.text(argument) or "") is not None
            case ast.Compare(left=ast.Subscript(slice=ast.Slice()), comparators=[right]):
                prefixed |= _PREFIX.fullmatch(module.text(right) or "") is not None
            case ast.Call(func=called):
                changed |= module.dotted(called) in ("builtins.setattr", "builtins.delattr", "builtins.type")
            case ast.Subscript(ctx=ast.Store() | ast.Del(), value=place):
                changed |= ast.unparse(place).endswith(("__dict__", "globals()", "namespace", "attrs"))
    return prefixed and changed


def _reads_interrupted(module: PythonModule, function: Function) -> bool:
    """Whether a function is registered for a signal and reads attributes of the frame that it gets."""
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    if len(names) < 2 or not any(
        isinstance(part, ast.Call)
        and module.dotted(part.func) == "signal.signal"
        and any(ast.unparse(argument).rpartition(".")[2] == function.name for argument in part.args[1:])
        for part in module.nodes
    ):
        return False
    return any(
        isinstance(part, ast.Attribute)
        and part.attr.startswith("f_")
        and isinstance(part.value, ast.Name)
        and part.value.id == names[-1]
        for part in ast.walk(function)
    )


def _records(module: PythonModule) -> Iterator[Finding]:
    """Yield where code reads from log records where it was called."""
    asks = any(isinstance(part, ast.keyword) and part.arg == "stacklevel" for part in module.nodes)
    if not asks or "logging" not in _top_imports(module):
        return
    for node in module.nodes:
        is_read = isinstance(node, ast.Attribute) and node.attr in _RECORDED and isinstance(node.ctx, ast.Load)
        if is_read and module.runs(node):
            yield finding(module, "frames", node, "reads from a log record where its caller is")


def _top_imports(module: PythonModule) -> set[str]:
    return {name.partition(".")[0] for name in module.imports.values()}
