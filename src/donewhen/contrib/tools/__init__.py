"""Ready-made tools."""

from donewhen.contrib.tools.planning import PlanningToolsSection
from donewhen.filesystem import InMemoryFilesystem

__all__ = ["InMemoryFilesystem", "PlanningToolsSection"]
