"""Where each chain ended, kept outside of the project: in the state folder of the person.

A chain grows. A file that no longer has the entry with which it ended has gone back: it was shortened, deleted, put
aside or replaced by an older one. The chain itself can't show that, because what is left of it is valid.

There is one file for each work tree. It is a log: the last line about a chain counts. A chain can have several marks,
one for each branch on which it ended differently; a mark that a chain has grown past is replaced.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.files import open_regular, read_regular, write_atomically
from donewhen.foundation.git_head import DETACHED, CheckedOut
from donewhen.foundation.locks import locked
from donewhen.foundation.person_folder import HEADS, kept_for
from donewhen.foundation.size_limits import STATE

_PATIENCE = 5.0
_MANY_PLACES = 500
_SPARE_LINES = 500


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """A chain had this entry at its end when this branch was checked out."""

    branch: str
    seq: int
    hash: str
    status: str = ""
    """The status of the job then; empty if it is not known."""


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of the file: about the work tree, or about one chain."""

    chain: str = ""
    marks: tuple[Mark, ...] = ()
    place: str = ""
    begun: str = ""
    guarded: bool = False


class _Kept(NamedTuple):
    """What the lines of one file say, and how many there are."""

    marks: dict[str, tuple[Mark, ...]]
    guarded: bool = False
    lines: int = 0
    ours: bool = True
    """False if another clone in the same place wrote them; its history is not that of this one."""


Marks: TypeAlias = Mapping[str, tuple[Mark, ...]]


class KeptMarks(NamedTuple):
    """What the files say about a work tree."""

    marks: Marks
    guarded: bool = False
    """Whether a stop hook has looked after the jobs here."""
    problem: str = ""
    """What is wrong with a file that was damaged; empty if nothing is."""
    out_of_reach: str = ""
    """The files that this process may not read; empty if there are none."""


class HeadMarks:
    """The marks of one work tree."""

    def __init__(self, place: CheckedOut) -> None:
        self.place = place
        self._paths = kept_for(HEADS, place.top)

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that exist, or the one that would be written."""
        return tuple(path for path in self._paths if os.path.lexists(path)) or self._paths[:1]

    def read(self) -> KeptMarks:
        """All marks. What can't be read is reported in the result; a missing file has no marks."""
        marks: dict[str, tuple[Mark, ...]] = {}
        guarded, problems, out_of_reach = False, [], []
        for path in self.paths:
            try:
                kept = self._read(path)
            except FileNotFoundError:
                continue
            except (PermissionError, NotADirectoryError) as error:
                # A sandbox, or a home folder that is none: nobody has touched the file.
                out_of_reach.append(f"{path}: {error.strerror}")
                continue
            except (OSError, ValueError, msgspec.MsgspecError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it has a line that donewhen did not write"
                problems.append(f"{path}: {reason}")
                continue
            guarded |= kept.guarded
            for chain, known in kept.marks.items():
                marks[chain] = tuple(dict.fromkeys((*marks.get(chain, ()), *known)))
        return KeptMarks(marks, guarded, "; ".join(problems), "; ".join(out_of_reach))

    def put(self, marks: Marks, *, guarded: bool = False) -> str:
        """Set the marks of these chains; return why that was not possible, or an empty text."""
        problems = []
        for path in self.paths or (None,):
            if path is None:
                return "there is no home folder"
            try:
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                with locked(path.with_suffix(".lock"), wait=_PATIENCE):
                    self._put(path, marks, guarded=guarded)
            except (OSError, DonewhenError) as error:
                problems.append(f"{path}: {getattr(error, 'strerror', None) or error}")
        return "; ".join(problems)

    def replace(self, marks: Marks) -> str:
        """Forget everything and keep these marks; return why that was not possible, or an empty text."""
        guarded = self.read().guarded
        for path in self.paths:
            with suppress(OSError):
                if not stat.S_ISREG(path.lstat().st_mode):
                    path.unlink()
            try:
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                with locked(path.with_suffix(".lock"), wait=_PATIENCE):
                    write_atomically(path, self._content(marks, guarded=guarded), mode=0o600)
            except (OSError, DonewhenError) as error:
                return f"{path}: {getattr(error, 'strerror', None) or error}"
        return ""

    def _read(self, path: Path) -> _Kept:
        content = read_regular(path, STATE)
        # A command that writes several entries reads the file each time; only its new lines are parsed again.
        before, known = _PARSED.get((path, self.place.begun), (b"", _Kept({})))
        if not content.startswith(before) or (before and not before.endswith(b"\n")):
            before, known = b"", _Kept({})
        kept = self._parsed(content[len(before) :], known)
        _PARSED.clear()
        _PARSED[path, self.place.begun] = (content, kept)
        return kept

    def _parsed(self, content: bytes, before: _Kept) -> _Kept:
        kept = dict(before.marks)
        guarded, count, ours = before.guarded, before.lines, before.ours
        lines = content.split(b"\n")
        # A last line without its end was cut off; the next writer leaves it out.
        for text in lines[:-1]:
            if not text:
                continue
            line = _LINES.decode(text)
            count += 1
            if line.place:
                ours = not (line.begun and self.place.begun) or line.begun == self.place.begun
            if ours:
                kept |= {line.chain: line.marks} if line.chain else {}
                guarded |= line.guarded
        return _Kept(kept, guarded, count, ours)

    def _put(self, path: Path, marks: Marks, *, guarded: bool) -> None:
        try:
            kept = self._read(path)
        except FileNotFoundError:
            _forget_missing_places(path.parent)
            write_atomically(path, self._content(marks, guarded=guarded), mode=0o600)
            return
        content = _PARSED[path, self.place.begun][0]
        guards = guarded and not kept.guarded
        changed = {chain: known for chain, known in marks.items() if kept.marks.get(chain) != known}
        cut_off = not content.endswith(b"\n")
        another = not kept.ours or self._is_of_another_clone(content)
        if cut_off or another or kept.lines > 2 * len(kept.marks) + _SPARE_LINES:
            write_atomically(path, self._content({**kept.marks, **marks}, guarded=guarded or kept.guarded), mode=0o600)
        elif changed or guards:
            lines = [_Line(chain=chain, marks=known) for chain, known in changed.items()]
            lines += [_Line(guarded=True)] if guards else []
            descriptor = open_regular(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
            try:
                os.write(descriptor, _encoded(lines))
            finally:
                os.close(descriptor)

    def _is_of_another_clone(self, content: bytes) -> bool:
        first = _LINES.decode(content.partition(b"\n")[0] or b"{}")
        return bool(self.place.begun) and first.begun != self.place.begun

    def _content(self, marks: Marks, *, guarded: bool) -> bytes:
        lines = [_Line(place=str(self.place.top), begun=self.place.begun, guarded=guarded)]
        lines += [_Line(chain=chain, marks=known) for chain, known in marks.items()]
        return _encoded(lines)


_LINES = msgspec.json.Decoder(_Line)
_PARSED: dict[tuple[Path, str], tuple[bytes, _Kept]] = {}


def _encoded(lines: Iterable[_Line]) -> bytes:
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


def after_growth(known: tuple[Mark, ...], now: Mark, grown_past: Iterable[Mark]) -> tuple[Mark, ...]:
    """The marks of a chain that now ends like this. Those that it has grown past are replaced. If it has gone back on
    the same branch, nothing changes: an entry that is appended then must not hide that."""
    left = tuple(mark for mark in known if mark not in (*grown_past,))
    if any(is_same_line(mark.branch, now.branch) for mark in left):
        return known
    return (*left, now)


def is_same_line(marked: str, now: str) -> bool:
    """Whether a chain can only have grown between the two: the same branch is checked out."""
    return marked == now and now != DETACHED


def _forget_missing_places(folder: Path) -> None:
    """Remove the files of work trees that no longer exist, once there are many."""
    paths = [*folder.glob("*.jsonl")]
    if len(paths) < _MANY_PLACES:
        return
    for path in paths:
        with suppress(OSError, ValueError, msgspec.MsgspecError):
            place = _LINES.decode(read_regular(path, STATE).partition(b"\n")[0]).place
            if place and not os.path.lexists(place):
                path.unlink()
                path.with_suffix(".lock").unlink(missing_ok=True)
