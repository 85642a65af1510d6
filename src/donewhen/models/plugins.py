"""Models of others: an installed distribution offers one under a name, as an entry point of ``donewhen.models``.

Nothing is looked for until a setting or an option names a model that is not built in, and then only that one is
imported. Only the environment in which donewhen is installed is searched, never a project's folder. Where a model is
part of what people agree to, so is the content of its distribution.
"""

from __future__ import annotations

import hashlib
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, EntryPoint, distributions
from pathlib import Path

from donewhen.foundation.errors import ConfigError
from donewhen.models.roles import Model

GROUP = "donewhen.models"
_MOST_FILES = 5000


@dataclass(frozen=True)
class ModelPlugin:
    """A model that an installed distribution offers."""

    name: str
    entry_point: EntryPoint
    distribution: Distribution

    @property
    def title(self) -> str:
        return f"{self.distribution.metadata['Name']} {self.distribution.version}"

    def open(self, rest: str) -> Model:
        """Open the model; ``rest`` is what follows its name and a colon."""
        try:
            model = self.entry_point.load()(rest)
        except ConfigError:
            raise
        except Exception as error:
            message = f"The model {self.name!r} of {self.title} can't be opened: {type(error).__name__}: {error}"
            raise ConfigError(message, where=self.entry_point.value) from error
        if not all(callable(getattr(model, role, None)) for role in ("roll", "decide", "propose")):
            raise ConfigError(
                f"What {self.title} offers as {self.name!r} is no model: it needs roll, decide and propose.",
                where=self.entry_point.value,
            )
        opened: Model = model
        return opened

    def fingerprint(self) -> str:
        """The distribution by its content. Raise ConfigError if that can't be said."""
        files = [file for file in self.distribution.files or () if file.suffix != ".pyc"]
        code = [file for file in files if ".dist-info/" not in file.as_posix()]
        if not any(file.suffix == ".py" for file in code) or len(files) > _MOST_FILES:
            raise ConfigError(
                f"The content of {self.title} is not known: it is installed in place, or its list of files is missing.",
                next_step="Install it as a wheel, without -e.",
            )
        digest = hashlib.sha256()
        for file in sorted(code):
            try:
                content = Path(str(self.distribution.locate_file(file))).read_bytes()
            except OSError as error:
                raise ConfigError(f"A file of {self.title} is missing: {error.strerror}.", where=str(file)) from error
            digest.update(f"{file.as_posix()} {hashlib.sha256(content).hexdigest()}\n".encode())
        return f"{self.title} sha256:{digest.hexdigest()}"


def find_plugin(kind: str, folders: list[str] | None = None) -> ModelPlugin | None:
    """The model with this name; None if no installed distribution offers it. Imports nothing of it."""
    found = list(_named(kind, folders))
    if len(found) > 1:
        titles = " and ".join(sorted(plugin.title for plugin in found))
        raise ConfigError(f"Both {titles} offer a model {kind!r}.", next_step="Uninstall one of them.")
    return found[0] if found else None


def _named(kind: str, folders: list[str] | None) -> Iterator[ModelPlugin]:
    if folders is None:
        folders = list({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    seen = set()
    for distribution in distributions(path=folders):
        for entry_point in distribution.entry_points.select(group=GROUP, name=kind):
            name = distribution.metadata["Name"]
            if name not in seen:
                seen.add(name)
                yield ModelPlugin(kind, entry_point, distribution)
