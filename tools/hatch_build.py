"""Build hook: compiles the rule files into the JSON files that the wheel ships."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileRules(BuildHookInterface):  # type: ignore[type-arg]
    """Runs before a wheel is packed; an editable install compiles into the user's cache instead."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, unless this is an editable install or a source distribution."""
        if self.target_name != "wheel" or version == "editable":
            return
        root = Path(self.root)
        sys.path.insert(0, str(root))
        try:
            from logtriage.engine.compile import compile_rules
            from logtriage.resources import write_rules

            write_rules(compile_rules([root / "rules"]), str(root / "rules" / "compiled.json"))
        finally:
            sys.path.remove(str(root))
