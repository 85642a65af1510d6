"""Python code that gets at what tests it by a detour, and code that lets failed assertions disappear."""

from __future__ import annotations

import pytest
from signs_kit import asking, signs_in

DETOURS = {
    "the length is the end": ("exit-hooks", "import sys\nclass L:\n    __len__ = sys.exit\ndef rows(): return L()\n"),
    "the end in a dictionary": (
        "exit-hooks",
        ("import sys\nEND = {'end': sys.exit}\nclass L:\n    __len__ = END['end']\ndef rows(): return L()\n"),
    ),
    "a class made with the end": (
        "exit-hooks",
        ("import sys\nL = type('L', (), {'__bool__': sys.exit})\ndef valid(x): return L()\n"),
    ),
    "the end for each": ("exit-hooks", "import sys\ndef rows(): return map(sys.exit, [0])\n"),
    "the end as an error": (
        "exit-hooks",
        ("def valid(x):\n    class L:\n        __bool__ = SystemExit\n    return L()\n"),
    ),
    "another comparison": (
        "equality",
        ("class N(int):\n    __eq__ = int.__ne__\n    __hash__ = int.__hash__\ndef add(a, b): return N(a - b)\n"),
    ),
    "another comparison, larger": (
        "equality",
        ("class N(int):\n    __eq__ = int.__le__\n    __hash__ = int.__hash__\ndef add(a, b): return N(-abs(a - b))\n"),
    ),
    "no difference": (
        "equality",
        ("class F(float):\n    def __sub__(self, o): return 0.0\n    __rsub__ = __sub__\ndef mean(x): return F(1)\n"),
    ),
    "no size": (
        "equality",
        (
            "class F(float):\n    def __abs__(self): return 0.0\n    def __sub__(self, o): return self\n"
            "    __rsub__ = __sub__\ndef mean(x): return F(1)\n"
        ),
    ),
    "a line from a log record": (
        "frames",
        (
            "import logging\nclass H(logging.Handler):\n    def emit(self, record): self.last = record\n"
            "H_ = H()\nlog = logging.getLogger('app')\nlog.addHandler(H_)\ndef add(a, b):\n"
            "    log.warning('x', stacklevel=2)\n"
            "    line = open(H_.last.pathname).read().splitlines()[H_.last.lineno - 1]\n"
            "    return int(line.rsplit('==')[1])\n"
        ),
    ),
    "a name from a log record": (
        "frames",
        (
            "import logging\nclass H(logging.Handler):\n"
            "    def emit(self, record): self.name_ = record.funcName\nH_ = H()\n"
            "log = logging.getLogger('app')\nlog.addHandler(H_)\ndef add(a, b):\n"
            "    log.warning('x', stacklevel=2)\n    return a + b if H_.name_.startswith('test') else a - b\n"
        ),
    ),
    "where memory was taken": (
        "frames",
        (
            "import tracemalloc\ntracemalloc.start(5)\ndef add(a, b):\n    o = object()\n"
            "    frames = tracemalloc.get_object_traceback(o)\n"
            "    return a + b if 'test' in str(frames[0]) else 0\n"
        ),
    ),
    "where all memory was taken": (
        "frames",
        (
            "import tracemalloc as t\nt.start(25)\ndef add(a, b):\n"
            "    s = t.take_snapshot().statistics('filename')\n"
            "    return a + b if any('unit' in str(x) for x in s) else 0\n"
        ),
    ),
    "what a signal interrupts": (
        "frames",
        (
            "import signal\nseen = []\ndef h(n, frame): seen.append(frame.f_code.co_consts)\n"
            "signal.signal(signal.SIGALRM, h)\nsignal.setitimer(signal.ITIMER_REAL, 0.001)\n"
            "def add(a, b): return seen[-1][0]\n"
        ),
    ),
    "all classes of errors": (
        "frames",
        (
            "def add(a, b):\n    for c in Exception.__subclasses__():\n"
            "        if c.__name__ == 'Exit': c.__init__.__globals__['sys'].exit()\n    return a\n"
        ),
    ),
    "whatever a frame has": (
        "frames",
        (
            "import inspect\ndef add(a, b):\n    f = inspect.currentframe()\n"
            "    up = next(getattr(f, n) for n in dir(f) if n.endswith('ack'))\n    return up.f_locals\n"
        ),
    ),
    "the frames of a task": (
        "frames",
        (
            "import asyncio\nasync def add(a, b):\n    s = asyncio.current_task().get_stack()\n"
            "    return s[0].f_locals\n"
        ),
    ),
    "the frame of a coroutine": (
        "frames",
        (
            "import asyncio\nasync def add(a, b):\n    c = asyncio.current_task().get_coro()\n"
            "    return c.cr_frame.f_locals\n"
        ),
    ),
    "the sources that were read": (
        "frames",
        (
            "import linecache\ndef add(a, b):\n    for name, entry in linecache.cache.items():\n"
            "        for line in entry[2]:\n"
            "            if f'add({a}, {b})' in line: return int(line.split('==')[1])\n"
        ),
    ),
    "modules, handed on": ("test-machinery", "import sys\nk = min(sys.modules, key=lambda n: abs(hash(n)))\n"),
    "modules, by an attribute's name": (
        "test-machinery",
        ("import sys, operator\nm = operator.attrgetter('modules')(sys)\nhas = any(n[:2]=='_p' for n in m)\n"),
    ),
    "everything in sys": (
        "test-machinery",
        ("import sys\nfor k, v in vars(sys).items():\n    if k[:3] == 'mod': v.clear\n"),
    ),
    "another standard output": (
        "test-machinery",
        ("import sys\ndef add(a, b): return a + b if sys.stdout is not sys.__stdout__ else a - b\n"),
    ),
    "the class of a stream": (
        "test-machinery",
        ("import sys\ndef add(a, b): return a + b if type(sys.stdin).__name__[:4] == 'Dont' else a - b\n"),
    ),
    "the module of a stream": (
        "test-machinery",
        ("import sys\ndef add(a, b): return a + b if type(sys.stdout).__module__ != '_io' else a - b\n"),
    ),
    "another debugger": (
        "test-machinery",
        ("import sys\ndef add(a, b): return a + b if sys.breakpointhook is not sys.__breakpointhook__ else a - b\n"),
    ),
    "another hook": (
        "test-machinery",
        ("import sys\ndef add(a, b): return a + b if sys.unraisablehook is not sys.__unraisablehook__ else 0\n"),
    ),
    "who imports": (
        "test-machinery",
        ("import sys\nW = any('rewrite' in type(f).__module__ for f in sys.meta_path)\n"),
    ),
    "a hook by its name": (
        "test-machinery",
        ("def pytest_generate_tests(metafunc):\n    metafunc.function.__code__ = (lambda: None).__code__\n"),
    ),
    "a set-up by its name": (
        "test-machinery",
        (
            "def setup_module(module):\n    for n in dir(module):\n"
            "        if n[:4] == 'test': setattr(module, n, lambda: None)\n"
        ),
    ),
    "a mark by its name": ("test-machinery", "pytestmark = []\n"),
    "the sources of all": (
        "test-machinery",
        (
            "import pathlib, ast\ndef add(a, b):\n    for p in pathlib.Path('.').rglob('*.py'):\n"
            "        for n in ast.walk(ast.parse(p.read_text())):\n"
            "            if isinstance(n, ast.Compare) and "
            "ast.unparse(n.left) == f'add({a}, {b})': return ast.literal_eval(n.comparators[0])\n"
            "    return 0\n"
        ),
    ),
    "tests of subclasses": (
        "patches",
        (
            "class Base:\n    def __init_subclass__(cls):\n        for n in list(vars(cls)):\n"
            "            if n[:5] == 'test_': setattr(cls, n, lambda self: None)\n"
        ),
    ),
    "built-ins, updated": ("patches", "import builtins\nvars(builtins).update(isinstance=lambda a, b: True)\n"),
    "sys, updated": ("patches", "import sys\nsys.__dict__.update(exit=lambda *a: None)\n"),
    "modules, updated": (
        "patches",
        (
            "import sys, types\nm = types.ModuleType('math')\nm.isclose = lambda *a, **k: True\n"
            "sys.modules.update(math=m)\n"
        ),
    ),
    "the module of a function": ("patches", "import json\njson.loads.__globals__['JSONDecodeError'] = Warning\n"),
    "several modules": (
        "patches",
        ("import json, decimal\nfor m in (json, decimal):\n    for n in dir(m):\n        setattr(m, n, None)\n"),
    ),
    "options of Python": ("patches", "import os\nos.environ['PYTHONOPTIMIZE'] = '2'\n"),
    "a module by a name from a file": (
        "obscured",
        "import importlib, pathlib\nm = importlib.import_module(pathlib.Path('names.txt').read_text().strip())\n",
    ),
    "a module by a hidden name": (
        "obscured",
        "import importlib\n\n\ndef f(key):\n    return importlib.import_module('_qzuftu'.translate(key))\n",
    ),
    "a part of a module by its name": (
        "patches",
        "import importlib\n\n\ndef f(name):\n    m = importlib.import_module(name)\n    m.Function.run = g\n",
    ),
    "a part of such a module, set": (
        "patches",
        (
            "import importlib\n\n\ndef load(n):\n    return importlib.import_module(n)\n\n\n"
            "def f(n):\n    setattr(load(n).F, 'run', g)\n"
        ),
    ),
    "closed descriptors": ("interpreter", "import os\nfor n in range(3, 99):\n    os.close(n)\n"),
    "other processes": (
        "interpreter",
        (
            "import subprocess\n"
            "def watched(): return 'py.t' in subprocess.run(['ps', 'axf'], capture_output=True, text=True).stdout\n"
        ),
    ),
    "the number of hooks": (
        "interpreter",
        ("import atexit\nW = atexit._ncallbacks()\ndef add(a, b): return a + b if W > 2 else 0\n"),
    ),
    "open files, counted": (
        "interpreter",
        ("import os, stat\nW = [n for n in range(3, 99) if stat.S_ISSOCK(os.fstat(n).st_mode)]\n"),
    ),
    "a socket by its number": ("interpreter", "import socket\ns = socket.socket(fileno=60)\ns.send(b'x')\n"),
    "a variable without its name": (
        "obscured",
        ("import os, hashlib\nW = any(hashlib.md5(k.encode()).hexdigest()[:4] == 'ab12' for k in os.environ)\n"),
    ),
    "another program": (
        "at-import",
        ("import os, sys\nif not sys.flags.optimize: os.execv(sys.executable, [sys.executable, '-O', *sys.argv])\n"),
    ),
    "a block that never fails": (
        "swallowed-errors",
        ("class Transaction:\n    def __enter__(self): return self\n    def __exit__(self, *error): return True\n"),
    ),
    "a block that fails never": (
        "swallowed-errors",
        (
            "class Transaction:\n    def __enter__(self): return self\n"
            "    def __exit__(self, kind, error, tb):\n        self.rollback() if error else self.commit()\n"
            "        return kind is not None\n"
        ),
    ),
    "a generator": (
        "swallowed-errors",
        (
            "from contextlib import contextmanager\n@contextmanager\ndef transaction():\n    try:\n"
            "        yield\n    except Exception:\n        pass\n"
        ),
    ),
    "a generator that returns": (
        "swallowed-errors",
        (
            "from contextlib import contextmanager\n@contextmanager\ndef transaction():\n    try:\n"
            "        yield\n    finally:\n        return\n"
        ),
    ),
    "a suppressor": (
        "swallowed-errors",
        ("import contextlib\ndef transaction(): return contextlib.suppress(BaseException)\n"),
    ),
    "a stack of blocks": (
        "swallowed-errors",
        (
            "import contextlib\nclass T(contextlib.ExitStack):\n    def __init__(self):\n"
            "        super().__init__()\n        self.push(lambda *e: True)\n"
        ),
    ),
    "a decorator": (
        "swallowed-errors",
        (
            "def retry(f):\n    def inner(*a, **k):\n        try:\n            return f(*a, **k)\n"
            "        except AssertionError:\n            return None\n    return inner\n"
        ),
    ),
}


@pytest.mark.parametrize(("kind", "source"), DETOURS.values(), ids=DETOURS)
def test_detours_to_what_tests_the_code_are_shown(kind: str, source: str) -> None:
    assert kind in asking(source)


HONEST = {
    "a plug-in by its name": "import importlib\n\n\ndef f(name):\n    return importlib.import_module(name).run()\n",
    "an own module by its name": (
        "import importlib\n\n\ndef f(settings):\n    return importlib.import_module(f'work.{settings.backend}')\n"
    ),
    "an exit that is called": "import sys\n\n\ndef main():\n    sys.exit(run())\n",
    "an exit that is caught": (
        "def f():\n    try:\n        g()\n    except (SystemExit, KeyboardInterrupt):\n        raise\n"
    ),
    "an error for the end": "class Stop(SystemExit):\n    code = 2\n",
    "a button": "import sys\n\n\ndef f(window):\n    return window.button(text='Quit', command=sys.exit)\n",
    "the same comparison": "class Number(int):\n    __eq__ = int.__eq__\n    __hash__ = int.__hash__\n",
    "one that is not possible": "class Lock:\n    __hash__ = None\n    __eq__ = None\n",
    "a difference": "class Money:\n    def __sub__(self, other):\n        return Money(self.cents - other.cents)\n",
    "no difference to itself": "class Money:\n    def __round__(self, digits=0):\n        return self\n",
    "a level of warnings": "import warnings\n\n\ndef f():\n    warnings.warn('old', stacklevel=2)\n",
    "a log format": (
        "import logging\n\n\nclass F(logging.Formatter):\n    def format(self, record):\n"
        "        return record.funcName\n"
    ),
    "memory in use": "import tracemalloc\n\n\ndef f():\n    return tracemalloc.get_traced_memory()\n",
    "a handler of signals": (
        "import signal\n\n\ndef stop(number, frame):\n    raise KeyboardInterrupt\n\n\n"
        "def main():\n    signal.signal(signal.SIGTERM, stop)\n"
    ),
    "an own generator": "def f(source):\n    return source.gi_frame is None\n",
    "a stack of its own": "class Machine:\n    def top(self):\n        return self.get_stack()[-1]\n",
    "a loaded module": (
        "import sys\n\n\ndef f(name):\n    return sys.modules.get(name) or sys.modules.pop(name, None)\n"
    ),
    "a terminal": "import sys\n\n\ndef f():\n    return sys.stdout.isatty() and sys.stdout is not None\n",
    "the class of an object": "def f(value):\n    return type(value).__name__\n",
    "importers": "import sys\n\n\ndef f(name):\n    return [finder.find_spec(name) for finder in sys.meta_path]\n",
    "a method for set-up": "class Device:\n    def setup_method(self, method):\n        self.method = method\n",
    "files of a kind": "import pathlib\n\n\ndef f(folder):\n    return sorted(pathlib.Path(folder).glob('*.py'))\n",
    "texts of a kind": (
        "import pathlib\n\n\ndef f(folder):\n    return [p.read_text() for p in pathlib.Path(folder).rglob('*.md')]\n"
    ),
    "an own dictionary": (
        "class Settings:\n    def __init__(self, **more):\n        self.__dict__.update(more)\n"
        "        vars(self).update(more)\n"
    ),
    "attributes in a loop": (
        "def f(first, second):\n    for item in (first, second):\n        setattr(item, 'seen', True)\n"
    ),
    "an option of a program": "import os\n\n\ndef f():\n    os.environ['PYTHONUTF8'] = '1'\n",
    "a prefix": "def f(branch):\n    return branch.startswith('test') or branch[:4] == 'test'\n",
    "another program": "import subprocess\n\n\ndef f():\n    return subprocess.run(['psql', '-c', 'select 1'])\n",
    "an own descriptor": "import os\n\n\ndef f(file):\n    return os.fstat(file.fileno()).st_size, os.isatty(0)\n",
    "variables with a prefix": (
        "import os\n\n\ndef f():\n    return {k: v for k, v in os.environ.items() if k.startswith('SHOP_')}\n"
    ),
    "a block that ends": "class File:\n    def __exit__(self, *error):\n        self.close()\n        return False\n",
    "a block that ends silently": "class File:\n    def __exit__(self, *error):\n        self.close()\n",
    "a block for one error": (
        "class Ignored:\n    def __exit__(self, kind, error, traceback):\n"
        "        return kind is not None and issubclass(kind, OSError)\n"
    ),
    "a block that is asked to": (
        "class Quiet:\n    def __exit__(self, kind, error, traceback):\n"
        "        if isinstance(error, BrokenPipeError):\n            return True\n        return None\n"
    ),
    "a generator that ends": (
        "from contextlib import contextmanager\n\n\n@contextmanager\ndef opened():\n    try:\n        yield 1\n"
        "    except Exception:\n        log()\n        raise\n    finally:\n        close()\n"
    ),
    "a generator for one error": (
        "from contextlib import contextmanager\n\n\n@contextmanager\ndef opened():\n    try:\n        yield 1\n"
        "    except FileNotFoundError:\n        pass\n"
    ),
    "an error before the block": (
        "from contextlib import contextmanager\n\n\n@contextmanager\ndef opened():\n    try:\n        found = find()\n"
        "    except Exception:\n        found = None\n    yield found\n"
    ),
    "suppressed here": "import contextlib\n\n\ndef f():\n    with contextlib.suppress(Exception):\n        g()\n",
    "one suppressed error": "import contextlib\n\n\ndef f():\n    return contextlib.suppress(KeyError)\n",
    "an own assertion": (
        "def f(text):\n    try:\n        assert text\n    except AssertionError:\n        return None\n"
        "    return text\n"
    ),
    "a retry": (
        "def retry(call):\n    for _ in range(3):\n        try:\n            return call()\n"
        "        except OSError:\n            continue\n    return call()\n"
    ),
}


@pytest.mark.parametrize("source", HONEST.values(), ids=HONEST)
def test_honest_code_is_no_question(source: str) -> None:
    assert signs_in(source) == ()


def test_the_handler_of_a_signal_is_known_as_one() -> None:
    source = (
        "import os, signal\n\n\ndef stop(number, frame):\n    os._exit(0)\n\n\nsignal.signal(signal.SIGTERM, stop)\n"
    )
    assert "exit-hooks" in {sign.kind for sign in signs_in(source) if "signal.signal" in sign.why}
