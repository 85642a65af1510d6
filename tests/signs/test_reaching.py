"""Python code that reaches for what tests it, and honest code that looks like it."""

from __future__ import annotations

import pytest
from signs_kit import asking, signs_in

MACHINERY = {
    "import": "import pytest\n",
    "import of a part": "from _pytest.reports import TestReport\n",
    "late import": "def f():\n    import unittest\n    return unittest\n",
    "joined name": 'def f():\n    return __import__("py" + "test")\n',
    "joined list": 'NAME = "".join(["_py", "te", "st"])\n\n\ndef f():\n    return __import__(NAME)\n',
    "reversed": 'import sys\n\n\ndef f():\n    return sys.modules.get("tsetyp"[::-1])\n',
    "encoded": 'import base64, importlib\n\nm = importlib.import_module(base64.b64decode("X3B5dGVzdA==").decode())\n',
    "hexadecimal": 'm = __import__(bytes.fromhex("707974657374").decode())\n',
    "characters": "m = __import__(''.join(map(chr, [112, 121, 116, 101, 115, 116])))\n",
    "comprehension": "m = __import__(''.join(chr(c - 1) for c in (113, 122, 117, 102, 116, 117)))\n",
    "format": 'import os\n\n\ndef f():\n    return os.getenv("{}_CURRENT_{}".format("PYTEST", "TEST"))\n',
    "percent": 'from os import environ as e\n\n\ndef f():\n    return e.get("%s_VERSION" % "PYTEST")\n',
    "any module": "import sys\n\n\ndef f():\n    return [m for m in sys.modules if m]\n",
    "values of modules": "import sys\n\n\ndef f():\n    for m in tuple(sys.modules.values()):\n        m.x\n",
    "a prefix": 'import os\n\n\ndef f():\n    return any(k.startswith("PYT") for k in os.environ)\n',
    "a loop over variables": (
        "import os\n\n\ndef f():\n"
        '    for k in os.environ:\n        if k.endswith("CURRENT_TEST"):\n            return 1\n'
    ),
    "a variable of the project": 'import os\n\n\ndef f():\n    return os.environ.get("SHOP_TESTING")\n',
    "the runner": 'import sys\n\n\ndef f():\n    return "pytest" in sys.argv[0]\n',
    "a report": 'def f():\n    open("build/junit.xml", "w").write("")\n',
    "a search": 'import glob, tempfile\n\n\ndef f():\n    return glob.glob(tempfile.gettempdir() + "/*")\n',
}


@pytest.mark.parametrize("source", MACHINERY.values(), ids=MACHINERY)
def test_code_that_names_test_machinery_is_shown(source: str) -> None:
    assert "test-machinery" in asking(source)


FRAMES = {
    "a frame": 'import sys\n\n\ndef f():\n    return sys._getframe(1).f_locals["wanted"]\n',
    "an alias": "from sys import _getframe as g\n\n\ndef f():\n    return g(2)\n",
    "a stack": "import inspect as i\n\n\ndef f():\n    return i.stack()[1]\n",
    "an error": (
        "def f():\n    try:\n        1 / 0\n    except Exception as e:\n"
        "        return e.__traceback__.tb_frame.f_back.f_locals\n"
    ),
    "getattr": 'def f(frame):\n    return getattr(frame, "f_" + "back")\n',
    "getattr of sys": 'import sys\n\n\ndef f():\n    return getattr(sys, "_get" "frame")(1)\n',
    "all objects": "import gc\n\n\ndef f():\n    return gc.get_objects()\n",
    "a dictionary": 'import sys\n\n\ndef f():\n    return sys.__dict__["_getframe"](1)\n',
}


@pytest.mark.parametrize("source", FRAMES.values(), ids=FRAMES)
def test_code_that_reads_its_callers_is_shown(source: str) -> None:
    assert "frames" in asking(source)


PATCHES = {
    "a clock": "import time\n\ntime.monotonic = lambda: 0\n",
    "a class": "import datetime as d\n\nd.datetime = object\n",
    "setattr": 'import time\n\n\ndef f():\n    setattr(time, "sleep", print)\n',
    "an alias": "import time\n\nclock = time\nclock.time = print\n",
    "a dictionary": 'import time\n\ntime.__dict__["time"] = print\n',
    "a computed module": 'm = __import__("ti" + "me")\nm.time = print\n',
    "a loaded module": 'import sys\n\nsys.modules["time"].time = print\n',
    "a module": 'import sys\n\nsys.modules["time"] = object()\n',
    "a builtin": "import builtins\n\nbuiltins.AssertionError = Exception\n",
    "builtins": '__builtins__["isinstance"] = print\n',
    "an assertion": "from unittest import TestCase\n\nTestCase.assertEqual = print\n",
    "an importer": "import sys\n\nsys.meta_path.insert(0, object())\n",
    "several": "import time\n\nx, time.time = 1, print\n",
    "an exit": "import sys\n\n\ndef f():\n    sys.exit = print\n",
}


@pytest.mark.parametrize("source", PATCHES.values(), ids=PATCHES)
def test_code_that_replaces_what_belongs_to_others_is_shown(source: str) -> None:
    assert "patches" in asking(source)


ENDS = {
    "_exit": "import os\n\n\ndef f():\n    os._exit(0)\n",
    "an alias": "from os import _exit as leave\n\n\ndef f():\n    leave(0)\n",
    "getattr": 'import os\n\n\ndef f():\n    getattr(os, "_exit")(0)\n',
    "a decorated hook": 'import atexit\n\n\n@atexit.register\ndef done():\n    open("r", "w").write("x")\n',
    "a hook": (
        "import atexit\n\n\ndef done():\n    save()\n\n"
        '\ndef save():\n    p.write_text("x")\n\n\natexit.register(done)\n'
    ),
    "a bound method": 'import atexit, pathlib\n\natexit.register(pathlib.Path("r").write_text, "x")\n',
    "a lambda": "import atexit, os\n\natexit.register(lambda: os.replace('a', 'b'))\n",
    "a signal": "import os, signal\n\n\ndef h(*_):\n    os._exit(0)\n\n\nsignal.signal(15, h)\n",
    "an excepthook": "import os, sys\n\n\ndef h(*_):\n    os.replace('a', 'b')\n\n\nsys.excepthook = h\n",
}


@pytest.mark.parametrize("source", ENDS.values(), ids=ENDS)
def test_code_that_ends_the_process_or_writes_at_its_end_is_shown(source: str) -> None:
    assert "exit-hooks" in asking(source)


OTHERS = {
    "tracing": ("interpreter", "import sys\n\nsys.settrace(print)\n"),
    "an open file": ("interpreter", "import os\n\nfor fd in range(3, 64):\n    os.write(fd, b'passed')\n"),
    "a number": ("interpreter", "import os\n\n\ndef f():\n    os.write(5, b'passed')\n"),
    "the process": ("interpreter", 'def f():\n    return open("/proc/self/cmdline").read()\n'),
    "memory": ("interpreter", "import ctypes\n\n\ndef f():\n    ctypes.pythonapi.PyDict_Clear()\n"),
    "an exit": ("at-import", "import sys\n\nsys.exit(0)\n"),
    "a raised exit": ("at-import", "raise SystemExit\n"),
    "a program": ("at-import", "import subprocess\n\nsubprocess.Popen(['sh'])\n"),
    "a thread": ("at-import", "import threading\n\nt = threading.Thread(target=print)\nt.start()\n"),
    "a file": ("at-import", "from pathlib import Path\n\nPath('x').write_text('y')\n"),
    "exec": ("obscured", "def f(text):\n    exec(text)\n"),
    "eval by another name": (
        "obscured",
        "import builtins\n\nrun = builtins.eval\n\n\ndef f(text):\n    return run(text)\n",
    ),
    "no Python": ("obscured", "import pytest\ndef f(:\n"),
}


@pytest.mark.parametrize(("kind", "source"), OTHERS.values(), ids=OTHERS)
def test_other_reaches_are_shown(kind: str, source: str) -> None:
    assert kind in asking(source)


HONEST = {
    "what programs use": (
        "import atexit, os, shutil, subprocess, time\n\n\ndef start(path):\n    atexit.register(shutil.rmtree, path)\n"
        '    began = time.monotonic()\n    debug = os.environ.get("APP_DEBUG")\n'
        '    subprocess.run(["git", "status"], check=True)\n    return began, debug\n'
    ),
    "a method at exit": (
        "import atexit\n\n\nclass Pool:\n    def __init__(self):\n        atexit.register(self.close)\n\n"
        "    def close(self):\n        self.file.close()\n"
    ),
    "a signal": (
        "import signal, sys\n\n\ndef stop(*_):\n    sys.exit(1)\n\n\ndef main():\n    signal.signal(15, stop)\n"
    ),
    "a program": "import sys\n\n\ndef main():\n    return 0\n\n\nif __name__ == '__main__':\n    sys.exit(main())\n",
    "types only": "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import pytest\n",
    "a module that is lazy": "import sys\n\n\nclass M:\n    pass\n\n\nsys.modules[__name__] = M()\n",
    "the caller's module": 'import sys\n\n\ndef f():\n    return sys._getframe(1).f_globals["__name__"]\n',
    "an own module": "import work\n\nwork.level = 3\n",
    "a relative import": "from . import settings\n\nsettings.level = 3\n",
    "a local of a module's name": (
        "import typing as t\n\n\ndef make(cls):\n    t = object.__new__(cls)\n    t.name = 1\n    return t\n"
    ),
    "an argument of a builtin's name": "def f(type, id):\n    type.name = id\n",
    "streams": "import sys\n\n\ndef quiet(stream):\n    sys.stdout = stream\n",
    "prose": 'def f():\n    raise ValueError("run pytest with an option")\n',
    "a docstring": 'def f():\n    """Tested by pytest."""\n    return 1\n',
    "an ignored folder": 'IGNORED = [".pytest_cache", ".git"]\n',
    "a fork": "import os\n\n\ndef run():\n    if os.fork() == 0:\n        os._exit(0)\n",
    "namespaces": 'def f():\n    return open("/proc/self/cgroup").read()\n',
    "a temporary file": (
        "import tempfile\n\n\ndef f():\n    with tempfile.TemporaryDirectory() as d:\n        return d\n"
    ),
    "a loaded module": 'import sys\n\n\ndef f():\n    return sys.modules.get("IPython")\n',
    "variables with a prefix": (
        'import os\n\n\ndef f():\n    return {k: v for k, v in os.environ.items() if k.startswith("SHOP_")}\n'
    ),
    "the newest version": "LATEST = 'latest'\nCONTEST = 'contest'\nATTEST = {'attest': 1}\n",
}


@pytest.mark.parametrize("source", HONEST.values(), ids=HONEST)
def test_honest_code_is_no_question(source: str) -> None:
    assert signs_in(source) == ()


def test_a_program_may_end_itself_if_nothing_imports_it() -> None:
    program = "#!/usr/bin/env python3\nimport sys\n\nsys.exit(0)\n"
    assert asking(program) == []
    assert asking(program, used=["work"]) == ["at-import"]
    assert asking("import sys\n\nsys.exit(0)\n", name="src/work/__main__.py") == []


def test_tests_may_use_test_machinery() -> None:
    assert asking("import pytest\nimport sys\n\nsys._getframe(1)\n", is_test=True) == []


def test_a_text_that_grows_without_end_is_left_alone() -> None:
    grown = "x = 'a' * 999\n" + "".join(f"x{i} = 'y'.join(x)\nx = x{i} * 1000\n" for i in range(9))
    assert asking(f"{grown}y = '%999999999d' % 1\nz = '{{:>99999999}}'.format(1)\n") == []


def test_code_that_is_nested_too_deep_to_read_is_no_way_out() -> None:
    source = f"x = {'-' * 5000}1\nimport pytest\n"
    assert asking(source) == ["obscured"] or asking(source) == ["test-machinery"]
