"""docs/reference/api.md and errors.md: every documented import path, read from the source.

The source is read, not imported, so that signatures look as they were written, whichever Python writes the page.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages

from donewhen.foundation.errors import DonewhenError, ExitCode

# In the order of the page. A name is described where it comes first, and listed wherever else it can be imported from.
PATHS = (
    "donewhen.completion",
    "donewhen.jobs",
    "donewhen.jobs.board.survey",
    "donewhen.jobs.audit.audit",
    "donewhen.jobs.evidence.requirements",
    "donewhen.judging",
    "donewhen.learning",
    "donewhen.models",
    "donewhen.contrib.tools",
    "donewhen.contrib.tools.planning",
    "donewhen.prompt",
    "donewhen.runtime",
    "donewhen.filesystem",
    "donewhen.config",
    "donewhen.testing",
    "donewhen.testing.messages_api",
    "donewhen.testing.responses_api",
    "donewhen.testing.contract",
    "donewhen.adapters",
    "donewhen.adapters.claude_agent_sdk",
    "donewhen.adapters.guard_choice",
    "donewhen.adapters.scripted",
    "donewhen.protocols",
    "donewhen.foundation.errors",
    "donewhen.cli",
    "donewhen",
)

_WIDE = 100
_LONG_VALUE = 400

_EXIT_MEANINGS = {
    ExitCode.PASS: "What was asked for holds.",
    ExitCode.GATE_FAILED: "It was checked, and it is not done; or a budget is spent.",
    ExitCode.USAGE: "The command line, a setting, a path or the installation is wrong. Nothing was checked.",
    ExitCode.INTERNAL: "Nothing is known: a check itself is broken, or something failed inside donewhen.",
    ExitCode.INTERRUPTED: "Somebody pressed Ctrl-C.",
}


def api_page() -> str:
    """Every public name of every documented path, with its signature and docstring."""
    homes: dict[Definition, str] = {}
    for path in PATHS:
        for name in public_names(path):
            homes.setdefault(definition(path, name), path)
    lines = [
        "# Python reference",
        "",
        "Every import path that you may rely on, with its names. All of them import without any extra installed.",
        "A name is described once, under the first path that has it.",
        "",
        "In signatures, `Checkable` stands for whatever can be made a checker: an object with a `check` method, plain",
        "or async (`AnyChecker`), or a function of the context (`CheckFunction`).",
        "",
        *(f"- [`{path}`](#{path.replace('.', '')}): {_first_sentence(path)}" for path in PATHS),
        "",
    ]
    for path in PATHS:
        lines += [f"## {path}", "", prose(_docstring_of(path)), ""]
        described = {name: definition(path, name) for name in public_names(path)}
        for name, found in described.items():
            if homes[found] == path:
                lines += _entry(name, found)
        for home in PATHS:
            names = [f"`{name}`" for name, found in described.items() if homes[found] == home != path]
            if names:
                lines += [f"The same as in [`{home}`](#{home.replace('.', '')}): {', '.join(names)}.", ""]
    return "\n".join(lines)


def errors_page() -> str:
    """The exit statuses, and every error that is raised on purpose."""
    lines = [
        "# Errors and exit statuses",
        "",
        "## Exit statuses",
        "",
        "The command line maps every outcome to one of these, in one place.",
        "",
        "| status | name | meaning |",
        "| --- | --- | --- |",
        *(f"| {one.value} | `{one.name}` | {_EXIT_MEANINGS[one]} |" for one in ExitCode),
        "",
        "## Errors",
        "",
        "Every error that donewhen raises on purpose derives from `DonewhenError`. Each has a `message`, a `code` and",
        "an `exit_code`; where they help, `where` (a file and line, an option) and `next_step` (what to do about it).",
        "Plain `ValueError` and `TypeError` are raised where a constructor is given something that can't be meant.",
        "",
        "A checker does not raise to say *no*. It returns an incomplete result with a [reason code](reasons.md).",
        "",
        "| error | import it from | code | exit status | meaning |",
        "| --- | --- | --- | --- | --- |",
    ]
    for error in _errors():
        meaning = prose(inspect.getdoc(error) or "").split("\n\n")[0].replace("\n", " ")
        code = f"`{error.code}` | {error.exit_code.value}"
        lines.append(f"| `{error.__name__}` | `{_import_path(error)}` | {code} | {meaning} |")
    return "\n".join([*lines, ""])


def _errors() -> list[type[DonewhenError]]:
    package = import_module("donewhen")
    for one in walk_packages(package.__path__, "donewhen."):
        if not one.name.endswith("__main__"):
            import_module(one.name)
    found = [DonewhenError]
    for error in found:
        found += [kind for kind in error.__subclasses__() if kind.__module__.startswith("donewhen.")]
    # By module as well: two rooms may have an error of the same name.
    return sorted(set(found), key=lambda kind: (kind is not DonewhenError, kind.__name__, kind.__module__))


def _import_path(error: type[DonewhenError]) -> str:
    name = error.__name__
    homes = (path for path in PATHS if name in public_names(path) and getattr(import_module(path), name) is error)
    return next(homes, error.__module__)


@dataclass(frozen=True)
class Definition:
    """Where a name is defined: the statement, and the docstring that belongs to it."""

    module: str
    node: ast.stmt
    doc: str


def public_names(path: str) -> list[str]:
    """``__all__``, or, without one, the public functions and classes that are defined there."""
    for node in module(path).body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
        ):
            return sorted(ast.literal_eval(node.value), key=str.casefold)
    defined = (node for node in module(path).body if isinstance(node, ast.FunctionDef | ast.ClassDef))
    return [node.name for node in defined if not node.name.startswith("_")]


@cache
def module(path: str) -> ast.Module:
    spec = find_spec(path)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(path)
    return ast.parse(Path(spec.origin).read_text(encoding="utf-8"))


@cache
def definition(path: str, name: str) -> Definition:
    """Follow imports from ``path`` to the statement that defines ``name``."""
    statements = list(_top_level(module(path).body))
    for number, node in enumerate(statements):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return Definition(path, node, ast.get_docstring(node) or "")
        if name in _assigned(node):
            return Definition(path, node, _following_docstring(statements, number))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("donewhen"):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return definition(node.module, alias.name)
    raise LookupError(f"{path} has no {name}")


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from _top_level(node.body)


def _assigned(node: ast.stmt) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _following_docstring(statements: list[ast.stmt], number: int) -> str:
    """The string right below an assignment, which is how a constant or a field is documented."""
    following = statements[number + 1] if number + 1 < len(statements) else None
    if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
        text = following.value.value
        return inspect.cleandoc(text) if isinstance(text, str) else ""
    return ""


def _docstring_of(path: str) -> str:
    return ast.get_docstring(module(path)) or ""


def _first_sentence(path: str) -> str:
    return prose(_docstring_of(path)).split("\n\n")[0].replace("\n", " ")


def _entry(name: str, found: Definition) -> list[str]:
    node = found.node
    lines = [f"### {name}", "", "```py"]
    if isinstance(node, ast.ClassDef):
        lines += [_class_signature(found, node), "```", ""]
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        lines += [_function_signature(node), "```", ""]
    else:
        lines += [_assignment(node), "```", ""]
    if found.doc:
        lines += [prose(found.doc), ""]
    if isinstance(node, ast.ClassDef):
        members = [line for one in _lineage(found, node) for line in _members(one)]
        lines += [*dict.fromkeys(members), ""] if members else []
    return lines


def _lineage(found: Definition, node: ast.ClassDef) -> list[ast.ClassDef]:
    """The class, and the bases in private files: what comes from there is described nowhere else."""
    classes = [node]
    for base in node.bases:
        name = ast.unparse(base.value if isinstance(base, ast.Subscript) else base)
        try:
            above = definition(found.module, name)
        except LookupError:
            continue
        if "._" in above.module and isinstance(above.node, ast.ClassDef):
            classes += _lineage(above, above.node)
    return classes


def _assignment(node: ast.stmt) -> str:
    written = ast.unparse(node)
    if len(written) <= _LONG_VALUE:
        return written
    # A long value is data, and has a page of its own; its type says what it is.
    return f"{ast.unparse(node.target)}: {ast.unparse(node.annotation)}" if isinstance(node, ast.AnnAssign) else written


def _class_signature(found: Definition, node: ast.ClassDef) -> str:
    bases = list(map(ast.unparse, node.bases))
    parameters = _constructor(_lineage(found, node))
    head = f"class {node.name}" + (f"({', '.join(bases)})" if bases else "")
    if parameters is None:
        return head
    # One line says both, where there is no base to speak of.
    return f"{head}\n\n{_call(node.name, parameters)}" if bases else f"class {_call(node.name, parameters)}"


def _constructor(lineage: list[ast.ClassDef]) -> list[str] | None:
    """What the class is called with; None where nobody calls it (protocols, enumerations, plain errors)."""
    for one in (statement for node in lineage for statement in node.body):
        if isinstance(one, ast.FunctionDef) and one.name == "__init__":
            return _parameters(one.args)[1:]
    node = lineage[0]
    if any(_called(one) == "dataclass" for one in node.decorator_list) or "NamedTuple" in map(ast.unparse, node.bases):
        return [text for one in reversed(lineage) for text, _, initialised in _fields(one) if initialised]
    if not node.bases:
        return []
    return None


def _called(node: ast.expr) -> str:
    return ast.unparse(node.func if isinstance(node, ast.Call) else node)


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, str, bool]]:
    """The public annotated fields of a class: as a parameter, their docstring, and whether they are one."""
    for number, one in enumerate(node.body):
        if not isinstance(one, ast.AnnAssign) or not isinstance(one.target, ast.Name) or one.target.id.startswith("_"):
            continue
        kind = ast.unparse(one.annotation)
        if kind.startswith("ClassVar"):
            continue
        default, initialised = _default(one.value)
        yield f"{one.target.id}: {kind}{default}", _following_docstring(node.body, number), initialised


def documented_fields(node: ast.ClassDef) -> dict[str, str]:
    """The public fields of a class by name, each with its docstring as Markdown on one line."""
    return {text.split(":")[0]: _on_one_line(doc) for text, doc, _ in _fields(node)}


def _default(value: ast.expr | None) -> tuple[str, bool]:
    if value is None:
        return "", True
    if not (isinstance(value, ast.Call) and _called(value) == "field"):
        return f" = {ast.unparse(value)}", True
    given = {keyword.arg: keyword.value for keyword in value.keywords if keyword.arg}
    initialised = not ("init" in given and ast.unparse(given["init"]) == "False")
    if "default_factory" in given:
        factory = given["default_factory"]
        made = ast.unparse(factory.body) if isinstance(factory, ast.Lambda) else f"{ast.unparse(factory)}()"
        return f" = {made}", initialised
    return (f" = {ast.unparse(given['default'])}" if "default" in given else ""), initialised


def _parameters(arguments: ast.arguments) -> list[str]:
    """Each parameter as it was written, with the markers ``/`` and ``*`` where they stand."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    defaults += arguments.defaults
    parts = [_parameter(one, default) for one, default in zip(positional, defaults, strict=True)]
    if arguments.posonlyargs:
        parts.insert(len(arguments.posonlyargs), "/")
    if arguments.vararg:
        parts.append(f"*{_parameter(arguments.vararg, None)}")
    elif arguments.kwonlyargs:
        parts.append("*")
    parts += [
        _parameter(one, default) for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    if arguments.kwarg:
        parts.append(f"**{_parameter(arguments.kwarg, None)}")
    return parts


def _parameter(one: ast.arg, default: ast.expr | None) -> str:
    kind = f": {ast.unparse(one.annotation)}" if one.annotation else ""
    if default is None:
        return one.arg + kind
    return f"{one.arg}{kind} = {ast.unparse(default)}" if kind else f"{one.arg}={ast.unparse(default)}"


def _function_signature(node: ast.FunctionDef | ast.AsyncFunctionDef, *, drop_first: bool = False) -> str:
    parameters = _parameters(node.args)[1:] if drop_first else _parameters(node.args)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    start = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    return start + _call(node.name, parameters, returns)


def _call(name: str, parameters: list[str], returns: str = "") -> str:
    line = f"{name}({', '.join(parameters)}){returns}"
    if len(line) <= _WIDE:
        return line
    return "\n".join([f"{name}(", *(f"    {parameter}," for parameter in parameters), f"){returns}"])


def _members(node: ast.ClassDef) -> list[str]:
    lines = []
    documented = [(text, doc) for text, doc, _ in _fields(node) if doc]
    lines += [f"- `{text.split(':')[0]}`: {_on_one_line(doc)}" for text, doc in documented]
    if "StrEnum" in map(ast.unparse, node.bases):
        values = [ast.unparse(one.value) for one in node.body if isinstance(one, ast.Assign)]
        lines.append("- values: " + ", ".join(f"`{value.strip(chr(39))}`" for value in values))
    for one in node.body:
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and not one.name.startswith("_"):
            lines.append(_member(one))
    return lines


def _member(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    decorators = {ast.unparse(one) for one in node.decorator_list}
    returns = f": {ast.unparse(node.returns)}" if node.returns else ""
    shown = f"{node.name}{returns}" if "property" in decorators else _flat(_function_signature(node, drop_first=True))
    kind = "property " if "property" in decorators else "classmethod " if "classmethod" in decorators else ""
    doc = _on_one_line(ast.get_docstring(node) or "")
    return f"- {kind}`{shown}`" + (f": {doc}" if doc else "")


def _flat(signature: str) -> str:
    return re.sub(r",\n\)", ")", signature).replace("(\n    ", "(").replace("\n    ", " ")


def _on_one_line(doc: str) -> str:
    return " ".join(prose(doc).split())


def prose(doc: str) -> str:
    """A docstring as Markdown."""
    doc = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", doc)
    return doc.replace("``", "`").replace("::\n", ":\n").strip()
