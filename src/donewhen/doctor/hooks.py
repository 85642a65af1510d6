"""All checks of the installed hooks, for each runtime."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from donewhen.adapters.agent_client import ClientRoom, TrustedHook, base_environment
from donewhen.adapters.diagnosis import Diagnosis
from donewhen.adapters.hook_files import read_settings
from donewhen.adapters.hook_targets import HOOK_TARGETS, HookTarget
from donewhen.config import Settings, find_root, load
from donewhen.config.agent_runtimes import managed_off_switches, off_switches
from donewhen.doctor.altered import altered_hooks
from donewhen.doctor.canary import canaries, program_on_path
from donewhen.doctor.entry_findings import ENTRY_CHECKS
from donewhen.doctor.firing import fired
from donewhen.doctor.hook_settings import RuntimeSettings, entries_in, is_ours, read_runtime_settings
from donewhen.doctor.rejected import rejected_settings
from donewhen.doctor.scratch import Scratch, foreign_stop_hooks, inherited_from, scratch_of
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.plain_text import one_line

_PATIENCE = 10.0


def hook_diagnoses(folder: Path, environ: Mapping[str, str], *, start_clients: bool = True) -> list[Diagnosis]:
    """Check the hooks that apply in ``folder``, without and with the real clients."""
    root = find_root(folder)
    found: list[Diagnosis] = []
    for target in HOOK_TARGETS.values():
        found += _of_runtime(target, folder, root, environ, start_clients)
    return found or [Diagnosis("hooks", "note", "none installed", "donewhen hooks install --claude, if you want them")]


def _of_runtime(
    target: HookTarget, folder: Path, root: Path, environ: Mapping[str, str], start_clients: bool
) -> list[Diagnosis]:
    try:
        runtime = read_runtime_settings(target, root, environ)
    except DonewhenError as error:
        place = f"{error.where}: " if error.where else ""
        return [Diagnosis(f"{target.name} settings", "broken", f"{place}{error.message}", error.next_step)]
    settings = _settings(root)
    found = list(_of_entries(runtime, settings))
    if not (found or runtime.installed):
        return []
    checks: list[Callable[[], Iterable[Diagnosis]]] = [
        *(partial(canaries, runtime, where, environ) for where in runtime.installed),
        *(partial(program_on_path, runtime, where, environ) for where in runtime.installed),
        lambda: too_old(runtime),
        lambda: switched_off(runtime),
        lambda: managed(runtime),
        lambda: wrong_header(runtime),
        *(partial(altered_hooks, runtime, where, environ) for where in runtime.installed),
        lambda: below_the_project(runtime, folder),
        lambda: installed_twice(runtime),
        lambda: foreign_hooks(runtime, environ),
        lambda: trusted(runtime, environ),
    ]
    if start_clients and runtime.installed:
        checks.append(lambda: rejected_settings(runtime, environ))
        checks.append(
            lambda: fired(runtime, environ, explained=any(diagnosis.health == "broken" for diagnosis in found))
        )
    for check in checks:
        try:
            found += check()
        except Exception as error:  # noqa: BLE001 - every failure is a diagnosis
            found.append(Diagnosis(f"{runtime.name} hooks", "broken", f"{type(error).__name__}: {error}"))
    return found


def _settings(root: Path) -> Settings:
    try:
        return load(root)
    except DonewhenError:
        # The settings have a diagnosis of their own.
        return Settings(root=root)


def _of_entries(runtime: RuntimeSettings, settings: Settings) -> Iterator[Diagnosis]:
    for file in runtime.hook_files:
        for check in ENTRY_CHECKS:
            yield from check(runtime, file, settings)


def too_old(runtime: RuntimeSettings) -> Iterator[Diagnosis]:
    """The installed client does not understand the file."""
    outdated = runtime.target.client.too_old()
    if outdated is not None:
        yield Diagnosis(f"{runtime.name} version", "broken", outdated.message, outdated.advice)


def switched_off(runtime: RuntimeSettings) -> Iterator[Diagnosis]:
    """A settings file switches all hooks off."""
    for file in runtime.files:
        for switch in off_switches(file.data, runtime.target.about):
            yield Diagnosis(
                f"{runtime.name} {file.where} switched off",
                "broken",
                f"{switch} in {file.path} switches the hooks of {runtime.target.title} off",
                f"Remove {switch} from {file.path}.",
            )


def managed(runtime: RuntimeSettings) -> Iterator[Diagnosis]:
    """The administrator of this machine has switched the hooks of projects off."""
    for pattern in runtime.target.about.managed_files:
        folder, _, name = pattern.rpartition("/")
        for path in sorted(Path(folder).glob(name)):
            with suppress(DonewhenError):
                for switch in managed_off_switches(read_settings(path), runtime.target.about):
                    yield Diagnosis(
                        f"{runtime.name} managed",
                        "broken",
                        f"{switch} in {path} switches these hooks of {runtime.target.title} off on this machine",
                        "Ask the administrator of this machine to install the hooks there, or to allow yours.",
                    )


def wrong_header(runtime: RuntimeSettings) -> Iterator[Diagnosis]:
    """The file says that it is of another format."""
    for file in runtime.hook_files:
        for key, value in runtime.target.header.items():
            if file.where in runtime.installed and file.data.get(key, value) != value:
                detail = f"{key} in {file.path} is {file.data.get(key)!r}, not {value!r}, so the file may be ignored"
                advice = f"donewhen hooks install --{runtime.name}{' --user' if file.where == 'user' else ''}"
                yield Diagnosis(f"{runtime.name} {file.where} format", "broken", detail, advice)


def below_the_project(runtime: RuntimeSettings, folder: Path) -> Iterator[Diagnosis]:
    """The client doesn't load a project's hooks when it is started in a sub-folder."""
    if runtime.target.client.project_hooks_below or "user" in runtime.installed:
        return
    name, title = f"{runtime.name} sub-folder", runtime.target.title
    advice = f"donewhen hooks install --{runtime.name} --user"
    if folder.resolve() != runtime.root.resolve():
        detail = f"{title}, started in {folder}, does not load the hooks of {runtime.root}, so nothing holds it"
        yield Diagnosis(name, "broken", detail, f"Start it in {runtime.root}, or: {advice}")
    else:
        detail = (
            f"{title} does not load these hooks when it is started in a sub-folder; your own hooks are loaded there"
        )
        yield Diagnosis(name, "note", detail, advice)


def installed_twice(runtime: RuntimeSettings) -> Iterator[Diagnosis]:
    """Every stop is checked and counted twice."""
    for file in runtime.files:
        if file.where == "switch" and runtime.installed and any(is_ours(entry) for entry in entries_in(file)):
            detail = f"{runtime.target.title} runs the hooks in {file.path} as well: every stop is checked twice"
            yield Diagnosis(f"{runtime.name} shared", "note", detail)
    if {"project", "user"} <= set(runtime.installed):
        detail = "installed for the project and for you: every stop is checked twice"
        yield Diagnosis(f"{runtime.name} twice", "note", detail, f"donewhen hooks uninstall --{runtime.name} --user")


def trusted(runtime: RuntimeSettings, environ: Mapping[str, str]) -> Iterator[Diagnosis]:
    """The client runs only hooks that the person trusts."""
    for where in runtime.installed:
        stop = next((entry.command for entry in runtime.entries(where) if entry.kind == "stop"), None)
        name = f"{runtime.name} {where} trust"
        hook = None if stop is None else TrustedHook(name, stop, runtime.root, where == "user")
        diagnosis = None if hook is None else runtime.target.client.trust(hook, environ)
        if diagnosis is not None:
            yield diagnosis


def foreign_hooks(runtime: RuntimeSettings, environ: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Another hook for the same event ends the turn with ``continue: false``, whatever ours answers."""
    others = foreign_stop_hooks(runtime)
    if not others:
        return
    with scratch_of(runtime) as scratch:
        for file, entry in others:
            if _ends_the_turn(runtime, entry.command, scratch, environ):
                yield Diagnosis(
                    f"{runtime.name} {file.where} other hook",
                    "broken",
                    f"{entry.place} answers `continue: false`, which ends the turn whatever donewhen answers: "
                    f"{one_line(entry.command, 100)}",
                    f"Remove that hook from {file.path}.",
                )


def _ends_the_turn(runtime: RuntimeSettings, command: str, scratch: Scratch, environ: Mapping[str, str]) -> bool:
    event = {
        "session_id": "donewhen-doctor",
        "cwd": str(scratch.project),
        "hook_event_name": runtime.with_kind("stop")[0],
        "stop_hook_active": False,
    }
    environment = base_environment(ClientRoom(scratch.home, scratch.project, "", inherited_from(runtime, environ)))
    if runtime.target.about.project_variable:
        environment[runtime.target.about.project_variable] = str(scratch.project)
    try:
        done = subprocess.run(
            [*runtime.target.client.shell(environment), command],
            input=json.dumps(event).encode(),
            capture_output=True,
            cwd=scratch.project,
            env=environment,
            timeout=_PATIENCE,
        )
        answer = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError, RecursionError):
        return False
    return isinstance(answer, dict) and answer.get("continue") is False
