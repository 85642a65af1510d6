"""donewhen: completion control for AI agents.

Nothing is done because somebody says so. It is done when the proof is there.

The rooms are imported by name, so that a program pays only for what it uses:

* :mod:`donewhen.completion` — may this agent stop? Every checker.
* :mod:`donewhen.runtime` — session, dispatcher, deadline, budget.
* :mod:`donewhen.filesystem` — where an agent's files are.
* :mod:`donewhen.prompt` — prompts, sections, tools.
* :mod:`donewhen.contrib.tools` — the planning tools.
* :mod:`donewhen.dataclasses` — immutable dataclasses.
* :mod:`donewhen.adapters` — agent runtimes.
* :mod:`donewhen.testing` — see a checker hold an agent back, without a model.
"""

__version__ = "0.1.0.dev0"

__all__ = ["__version__"]
