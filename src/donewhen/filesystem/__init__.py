"""Where an agent's files are: on this machine under one root, or in memory."""

from donewhen.filesystem.host import HostFilesystem
from donewhen.filesystem.memory import InMemoryFilesystem
from donewhen.filesystem.protocol import Filesystem, FilesystemError, PathEscapeError

__all__ = ["Filesystem", "FilesystemError", "HostFilesystem", "InMemoryFilesystem", "PathEscapeError"]
