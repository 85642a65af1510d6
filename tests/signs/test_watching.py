"""Python code that finds out whether it is tested, in ways that need no import of a test framework."""

from __future__ import annotations

import pytest
from signs_kit import asking, signs_in

WATCHES = {
    "tracing, from another module": ("interpreter", "import os\nos.sys.settrace(print)\n"),
    "tracing, by its name": ("interpreter", "import operator, sys\noperator.attrgetter('settrace')(sys)(print)\n"),
    "tracing, of an object": ("interpreter", "def f(modules):\n    modules[3].settrace(print)\n"),
    "a debugger": ("interpreter", "import pdb\n\n\nclass T(pdb.Pdb):\n    pass\n"),
    "a tracer": ("interpreter", "import trace\ntrace.Trace(count=0)\n"),
    "whether it is traced": ("interpreter", "import sys\n\n\ndef f():\n    return sys.gettrace() is None\n"),
    "memory of a number": (
        "interpreter",
        "import ctypes\n\n\ndef f():\n    ctypes.c_long.from_address(id(3)).value = 4\n",
    ),
    "memory": ("interpreter", "import ctypes\n\n\ndef f():\n    ctypes.memmove(id(3), id(4), 8)\n"),
    "the running program": ("interpreter", "import ctypes\nctypes.CDLL(None)._exit(0)\n"),
    "a call of the system": ("interpreter", "import ctypes\nctypes.CDLL('libc.so.6').syscall(231, 0)\n"),
    "another process": (
        "interpreter",
        "import os\n\n\ndef f():\n    return open(f'/proc/{os.getppid()}/cmdline').read()\n",
    ),
    "processes": ("interpreter", "import os\n\n\ndef f():\n    return os.path.join('/proc', 'self', 'cmdline')\n"),
    "a closed descriptor": ("interpreter", "import os\nos.close(60)\n"),
    "an interrupt": ("interpreter", "import _thread\n\n\ndef f():\n    _thread.interrupt_main()\n"),
    "an exit by another name": ("exit-hooks", "import posix\nposix._exit(0)\n"),
    "an imported exit": ("exit-hooks", "from posix import _exit as done\ndone(0)\n"),
    "a default": ("exit-hooks", "import os\n\n\ndef f(end=os.__dict__['_ex' + 'it']):\n    end(0)\n"),
    "code of a test": ("patches", "def f(test):\n    test.__code__ = (lambda: None).__code__\n"),
    "code, set": ("patches", "def f(test):\n    setattr(test, '__co' + 'de__', g)\n"),
    "builtins of globals": ("patches", "globals()['__builtins__']['AssertionError'] = OSError\n"),
    "all modules, mapped": ("test-machinery", "import sys\n\n\ndef f():\n    return map(g, sys.modules)\n"),
    "the number of modules": ("test-machinery", "import sys\n\n\ndef f():\n    return len(sys.modules) > 300\n"),
    "the program": ("test-machinery", "import sys\n\n\ndef f():\n    return 'test' in sys.argv[0]\n"),
    "the end of the program": (
        "test-machinery",
        "import sys\n\n\ndef f():\n    return sys.argv[0].endswith('pytest')\n",
    ),
    "files of tests": ("test-machinery", "import glob\n\n\ndef f():\n    return glob.glob('**/test_*.py')\n"),
    "a file of tests": ("test-machinery", "def f():\n    return open('tests/prices.py').read()\n"),
    "original arguments": ("test-machinery", "import sys\n\n\ndef f():\n    return 'test' in sys.orig_argv[0]\n"),
    "the file of a warning": (
        "frames",
        (
            "import warnings\n\n\ndef f():\n    with warnings.catch_warnings(record=True) as w:\n"
            "        warnings.warn('', stacklevel=2)\n    return w[0].filename\n"
        ),
    ),
    "a logger": ("frames", "import logging\n\n\ndef f():\n    return logging.getLogger().findCaller(False, 3)\n"),
    "a printed stack": ("frames", "import traceback\n\n\ndef f(file):\n    traceback.print_stack(file=file)\n"),
    "a dumped stack": ("frames", "import faulthandler\n\n\ndef f(file):\n    faulthandler.dump_traceback(file)\n"),
    "the module of a frame": ("frames", "import sys\n\n\ndef f():\n    return sys._getframemodulename(1)\n"),
    "all classes": ("frames", "def f():\n    return ().__class__.__base__.__subclasses__()\n"),
    "hidden objects": ("obscured", "import pickle\npickle.loads(b'cos\\n_exit\\n(I0\\ntR.')\n"),
    "a file that is run": ("obscured", "import runpy\nrunpy.run_path('data.txt')\n"),
    "an answer that is learned": (
        "equality",
        "class R:\n    def __eq__(self, o):\n        self.v = o\n        return self.v == o\n",
    ),
    "an answer that is kept": (
        "equality",
        "class R:\n    def __eq__(self, o):\n        object.__setattr__(self, 'v', o)\n        return self.v == o\n",
    ),
    "any number": ("equality", "class R(int):\n    def __eq__(self, o):\n        return isinstance(o, (int, float))\n"),
    "itself": (
        "equality",
        "class R(int):\n    def __eq__(self, o):\n        return int(self) == o or self is not None\n",
    ),
    "both orders": (
        "equality",
        "class R:\n    def __lt__(self, o):\n        return True\n\n    def __gt__(self, o):\n        return True\n",
    ),
}


@pytest.mark.parametrize(("kind", "source"), WATCHES.values(), ids=WATCHES)
def test_code_that_finds_out_whether_it_is_tested_is_shown(kind: str, source: str) -> None:
    assert kind in asking(source)


HONEST = {
    "what is larger than everything": (
        "class Infinity:\n    def __lt__(self, other):\n        return False\n\n    def __gt__(self, other):\n"
        "        return True\n\n    def __eq__(self, other):\n        return isinstance(other, self.__class__)\n"
    ),
    "a counter": (
        "class Price:\n    def __eq__(self, other):\n        if not isinstance(other, Price):\n"
        "            return NotImplemented\n        self.asked += 1\n        return self.cents == other.cents\n"
    ),
    "an argument": "import sys\n\n\ndef main():\n    return sys.argv[1] == '--latest' or sys.argv[0].endswith('.py')\n",
    "a guarded name": "UNSAFE = {'gi_frame', 'f_back', '_exit'}\n",
    "subclasses of its own": "class Shape:\n    pass\n\n\ndef shapes():\n    return Shape.__subclasses__()\n",
    "quiet warnings": "import warnings\n\n\ndef f():\n    with warnings.catch_warnings():\n        return g()\n",
    "an own descriptor": "import os\n\n\ndef f(path):\n    d = os.open(path, 0)\n    os.close(d)\n    os.close(0)\n",
    "a library": "import ctypes\n\nLIB = ctypes.CDLL('libz.so.1')\n",
    "a loaded module": "import sys\n\n\ndef f(name):\n    return name in sys.modules\n",
    "pickled data": "import pickle\n\n\ndef f(data):\n    return pickle.loads(data)\n",
    "an attribute of the standard library": "import os\n\n\ndef f():\n    return os.path.join('a', 'b')\n",
    "prose about a test": "def f():\n    print('see the test results')\n",
}


@pytest.mark.parametrize("source", HONEST.values(), ids=HONEST)
def test_honest_code_is_no_question(source: str) -> None:
    assert signs_in(source) == ()
