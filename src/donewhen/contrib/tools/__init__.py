"""Ready-made tools."""

from donewhen.contrib.tools.planning import PlanningToolsSection

__all__ = ["PlanningToolsSection"]
