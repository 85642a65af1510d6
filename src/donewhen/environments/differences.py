"""How two listings differ, each difference as a sentence that names what differs and why that matters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from donewhen.environments.listing import (
    Distribution,
    Interpreter,
    Listing,
    NodeModules,
    NodePackage,
    Program,
    PythonEnvironment,
)
from donewhen.foundation.plain_text import join_limited

_MAX_NAMED = 5


@dataclass(frozen=True)
class Difference:
    """Something that programs could load, and that is not as it was accepted."""

    sentence: str
    where: str = ""
    """The environment that it lies in."""
    distribution: tuple[Distribution | None, Distribution | None] | None = None
    """How it was accepted and how it is now, if it is an installed Python distribution."""
    package: tuple[NodePackage | None, NodePackage | None] | None = None
    """The same for a package of Node.js."""
    name: str = ""
    """Its name in the environment."""
    content: str = ""


def differences(accepted: Listing, now: Listing) -> tuple[Difference, ...]:
    """Everything that differs."""
    return (
        *_programs(accepted.programs, now.programs),
        *_searched(accepted.searched, now.searched),
        *_interpreters(accepted.interpreters, now.interpreters),
        *_python(accepted.python, now.python),
        *_node(accepted.node, now.node),
        *_parts("installation", accepted.tools, now.tools),
        *_parts("folder or module", accepted.others, now.others, ", from which checks can load"),
        *_stores(accepted.stores, now.stores),
    )


def _programs(before: Mapping[str, Program], after: Mapping[str, Program]) -> Iterator[Difference]:
    gone = {_last(path): path for path in before if path not in after}
    for path, program in after.items():
        accepted = before.get(path)
        if accepted is None:
            old = gone.pop(_last(path), None)
            instead = f" instead of {old}" if old is not None else ", and was not there before"
            yield Difference(f"the program {_last(path)} is found at {path}{instead}", name=path)
        elif accepted.real != program.real:
            yield Difference(
                f"the program {path} leads to {program.real or path}, not to {accepted.real or path}", name=path
            )
        elif accepted.hash != program.hash:
            yield Difference(f"the program {path} has another content", name=path)
    for path in gone.values():
        yield Difference(f"the program {path} is gone", name=path)


def _searched(before: Mapping[str, Program], after: Mapping[str, Program]) -> Iterator[Difference]:
    for path, program in after.items():
        accepted = before.get(path)
        if accepted is not None and accepted.hash != program.hash:
            yield Difference(f"the program {path} has another content", name=path)
        elif accepted is None and program.real:
            yield Difference(f"new: the program {path}, which is found instead of {program.real}", name=path)


def _interpreters(before: Mapping[str, Interpreter], after: Mapping[str, Interpreter]) -> Iterator[Difference]:
    for path, interpreter in after.items():
        accepted = before.get(path)
        if accepted is None:
            others = join(sorted(f"Python {found.version}" for found in before.values())) or "none"
            yield Difference(f"another interpreter: Python {interpreter.version} ({path}); accepted: {others}")
        elif accepted.version != interpreter.version:
            yield Difference(f"Python {interpreter.version} ({path}); accepted was {accepted.version}")
        elif changed := _changed(accepted.library, interpreter.library):
            yield Difference(
                f"changed files of Python {interpreter.version} ({path}), which belong to its standard library: "
                f"{join(_modules(changed))}"
            )


def _modules(parts: Iterable[str]) -> list[str]:
    return sorted({part.rstrip("/").rpartition("/")[2].removesuffix(".py") for part in parts})


def _python(before: Mapping[str, PythonEnvironment], after: Mapping[str, PythonEnvironment]) -> Iterator[Difference]:
    for where, environment in after.items():
        accepted = before.get(where)
        if accepted is None:
            names = join([distribution.name for distribution in environment.distributions]) or "nothing"
            yield Difference(f"new: the environment {where}, in which is installed: {names}", where)
            continue
        for name in _changed(accepted.settings, environment.settings):
            value = environment.settings.get(name, "nothing")
            yield Difference(f"pyvenv.cfg of {where} says {name} = {value}, which decides what Python loads", where)
        yield from _distributions(where, accepted, environment)
        yield from _loose(where, accepted.loose, environment.loose, "distribution")


def _distributions(where: str, accepted: PythonEnvironment, now: PythonEnvironment) -> Iterator[Difference]:
    before, after = _by_name(accepted.distributions), _by_name(now.distributions)
    for name in sorted({*before, *after}):
        old, new = before.get(name, ()), after.get(name, ())
        if old == new:
            continue
        if len(old) > 1 or len(new) > 1:
            versions = join([found.version for found in new]) or "none"
            yield Difference(f"{name} is installed more than once in {where}: {versions}", where, name=name)
            continue
        pair = old[0] if old else None, new[0] if new else None
        yield Difference(_distribution_sentence(*pair, where), where, distribution=pair, name=name)


def _by_name(distributions: Iterable[Distribution]) -> dict[str, tuple[Distribution, ...]]:
    found: dict[str, tuple[Distribution, ...]] = {}
    for distribution in distributions:
        found[distribution.name] = (*found.get(distribution.name, ()), distribution)
    return found


def _distribution_sentence(old: Distribution | None, new: Distribution | None, where: str) -> str:
    if new is None:
        if old is None:  # pragma: no cover - one of them exists
            return ""
        loads = f", which had plug-ins ({join(old.groups)})" if old.groups else ""
        return f"gone: {old.name} {old.version} in {where}{loads}"
    why = [
        *([f"comes from {new.source}"] if new.source and (old is None or old.source != new.source) else []),
        *([f"adds plug-ins ({join(_new(old, new, 'groups'))})"] if _new(old, new, "groups") else []),
        *(
            [f"has {join(_new(old, new, 'starts'))}, which Python runs at every start"]
            if _new(old, new, "starts")
            else []
        ),
    ]
    reason = f", which {' and '.join(why)}" if why else ""
    if old is None:
        return f"new: {new.name} {new.version} in {where}{reason}"
    if old.version != new.version:
        return f"other version: {new.name} {new.version} in {where}, accepted was {old.version}{reason}"
    return f"changed files of {new.name} {new.version} in {where}{reason}"


def _new(old: Distribution | None, new: Distribution, field: str) -> list[str]:
    known: tuple[str, ...] = () if old is None else getattr(old, field)
    return [name for name in getattr(new, field) if name not in known]


def _loose(
    where: str, before: Mapping[str, str], after: Mapping[str, str], whose: str, skip: Iterable[str] = ()
) -> Iterator[Difference]:
    for name in _changed(before, after):
        if name in skip:
            continue
        last = name.rstrip("/").rpartition("/")[2]
        runs = last.endswith((".pth", "._pth")) or last.partition(".")[0] in ("sitecustomize", "usercustomize")
        what = "new" if name not in before else "gone" if name not in after else "changed"
        why = "which Python runs at every start" if runs and whose == "distribution" else ""
        yield Difference(
            f"{what}: {name} in {where}, which belongs to no {whose}{why and f' and {why}'}",
            where,
            name=name,
            content=after.get(name, ""),
        )


def _node(before: Mapping[str, NodeModules], after: Mapping[str, NodeModules]) -> Iterator[Difference]:
    for where, modules in after.items():
        accepted = before.get(where, NodeModules())
        for place in _changed(accepted.packages, modules.packages):
            pair = accepted.packages.get(place), modules.packages.get(place)
            yield Difference(_package_sentence(*pair, f"{where}/{place}"), where, package=pair, name=place)
        yield from _loose(where, accepted.loose, modules.loose, "package")
    for where, accepted in before.items():
        if where not in after:
            yield Difference(f"gone: {where} with {len(accepted.packages)} package(s)", where)


def _package_sentence(old: NodePackage | None, new: NodePackage | None, place: str) -> str:
    if new is None:
        if old is None:  # pragma: no cover - one of them exists
            return ""
        return f"gone: {old.name} {old.version} ({place})"
    if old is None:
        return f"new: {new.name} {new.version} ({place})"
    if (old.name, old.version) != (new.name, new.version):
        return f"other version: {new.name} {new.version} ({place}), accepted was {old.version}"
    return f"changed files of {new.name} {new.version} ({place})"


def _parts(
    what: str, before: Mapping[str, Mapping[str, str]], after: Mapping[str, Mapping[str, str]], why: str = ""
) -> Iterator[Difference]:
    for where, parts in after.items():
        accepted = before.get(where)
        if accepted is None:
            yield Difference(f"new: the {what} {where}{why}", where)
        elif changed := _changed(accepted, parts):
            yield Difference(f"changed files of the {what} {where}: {join(changed)}".removesuffix(": "), where)


def _stores(before: Mapping[str, Mapping[str, str]], after: Mapping[str, Mapping[str, str]]) -> Iterator[Difference]:
    """Only what has another content than before: other projects add packages, and which of them are used is said by
    manifests and lock files."""
    for where, packages in after.items():
        accepted = before.get(where, {})
        changed = [name for name in _changed(accepted, packages) if name in accepted and name in packages]
        if changed:
            yield Difference(f"changed files of packages in {where}: {join(changed)}", where)


def _changed(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def join(names: Iterable[str]) -> str:
    """Some names as text."""
    return join_limited([*names], _MAX_NAMED)


def _last(path: str) -> str:
    return path.rpartition("/")[2]
