"""Lines of the ledger's file, made without decoding the events."""

from typing import Any

from hypothesis import given
from tests.support.sequences import SECRET, created, played, sequences

from partage.ledger.chain import line, line_of
from partage.ledger.tallies import salts_of


@given(sequences())
def test_a_glance_hides_what_decoding_hides(steps: Any) -> None:
    table = played(created(), steps)
    salts = salts_of(SECRET, table.state.members)
    for reader in (None, *table.state.members):
        for row, event in zip(table.rows, table.events, strict=True):
            assert line_of(row, reader, salts) == line(row, event, reader, salts)
