"""The archives that a release publishes, built once per session."""

import pytest
from tests.support.archives import Archives, build


@pytest.fixture(scope="session")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Archives:
    """The source archive of this checkout, and the wheel that it builds."""
    return build(tmp_path_factory.mktemp("archives"))
