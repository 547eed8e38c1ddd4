"""Optional packages that some tests need."""

import importlib.util
import os
from types import ModuleType

import pytest


def needed(name: str) -> ModuleType:
    """Import an optional package. Where it is missing, the test is skipped; in CI it fails."""
    if os.environ.get("CI") and importlib.util.find_spec(name) is None:
        pytest.fail(f"{name} is not installed.", pytrace=False)
    module: ModuleType = pytest.importorskip(name)
    return module
