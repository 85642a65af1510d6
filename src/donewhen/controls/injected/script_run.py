# Runs `python SCRIPT ARGUMENTS` unchanged, and tells the gate how the script ended.
"""The interpreter of the project runs this file by its path, without donewhen: standard library, Python 3.8 or later.

It imports nothing that the interpreter has not imported, since modules of the project can have the same names.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any


def _run(path: str, controls: Any) -> None:
    stream = None
    if controls is not None:
        controls.taken()
        controls.leave_environment()
        if controls.stream.claim():
            stream = controls.stream
            stream.send("start", "script")
    folder = os.getcwd()
    main: Any = type(sys)("__main__")
    with open(path, "rb") as file:
        content = file.read()
    vars(main).update(__file__=os.path.abspath(path), __builtins__=sys.modules["builtins"], __cached__=None)
    loader = sys.modules["_frozen_importlib_external"].SourceFileLoader  # what `importlib.machinery` names
    vars(main)["__loader__"] = loader("__main__", os.path.abspath(path))
    own = sys.modules["__main__"]
    sys.modules["__main__"] = main
    try:
        exec(compile(content, os.path.abspath(path), "exec", dont_inherit=True), vars(main))
    except SystemExit as error:
        status = int(error.code) if isinstance(error.code, int) else int(error.code is not None)
        if stream is not None:
            # Not the frame of this file.
            stream.send("script", *_files(error.__traceback__, path, folder))
            stream.send("end", str(status))
        code = error.code
    except BaseException as error:
        if stream is not None:
            stream.send("end", "1")
        # Without the frame of this file.
        traceback = None if error.__traceback__ is None else error.__traceback__.tb_next
        sys.excepthook(type(error), error.with_traceback(traceback), traceback)
        code = 1
    else:
        if stream is not None:
            stream.send("end", "0")
        return
    # Kept until here: modules that nothing refers to lose their names.
    del own
    sys.exit(code)


def _files(traceback: TracebackType | None, path: str, folder: str) -> list[str]:
    """The files that were running when the script was ended, without itself: relative to the working folder."""
    found: dict[str, None] = {}
    here = os.path.realpath(folder)
    own = os.path.realpath(path)
    step = traceback.tb_next if traceback is not None else None
    while step is not None:
        name = os.path.realpath(os.path.join(folder, step.tb_frame.f_code.co_filename))
        if name != own and name.startswith(here + os.sep):
            found[os.path.relpath(name, here).replace(os.sep, "/")] = None
        step = step.tb_next
    return list(found)


if __name__ == "__main__":
    del sys.argv[0]
    _HERE = os.path.dirname(os.path.realpath(__file__))
    if sys.path and os.path.realpath(sys.path[0]) == _HERE:
        # Absent with -I or -P.
        sys.path[0] = os.path.dirname(os.path.realpath(sys.argv[0]))
    _run(sys.argv[0], sys.modules.get("donewhen_controls"))
