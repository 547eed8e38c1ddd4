"""Studies at few runs, simulated once for all tests of the report."""

import pytest
from tests.studies.test_studies import play

from partage.studies import STUDIES


@pytest.fixture(scope="package")
def played_studies():
    """Every study of the paper except the random one, whose games are all different and so take longest."""
    return play(*(study for study in STUDIES.values() if study.name != "random"), runs=6)
