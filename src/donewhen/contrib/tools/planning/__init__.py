"""A plan that an agent keeps in the session, and the tools to manage it."""

from donewhen.contrib.tools.planning.plan import (
    AddSteps,
    CancelStep,
    Plan,
    PlanError,
    PlanStatus,
    PlanStep,
    SetupPlan,
    StepStatus,
    UpdateStep,
)
from donewhen.contrib.tools.planning.section import PlanningToolsSection

__all__ = [
    "AddSteps",
    "CancelStep",
    "Plan",
    "PlanError",
    "PlanStatus",
    "PlanStep",
    "PlanningToolsSection",
    "SetupPlan",
    "StepStatus",
    "UpdateStep",
]
