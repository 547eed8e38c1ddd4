"""Figures and tables that commands write into files."""

import io
from pathlib import Path
from typing import TYPE_CHECKING

from partage.errors import InputError
from partage.files import write_atomically

if TYPE_CHECKING:
    from partage.simulate.compare import Comparison
    from partage.simulate.result import Result

PICTURES = (".png", ".svg", ".pdf")
ROWS = ("run", "arm", "agent", "step")
READABLE = 0o644


def checked_outputs(plot: Path | None, csv: Path | None, csv_by: str) -> None:
    """Refuse files that could not be written, before the game is played."""
    if plot is not None and plot.suffix.lower() not in PICTURES:
        raise InputError(f"The plot is {plot}; its name must end in {', '.join(PICTURES)}.")
    if csv_by not in ROWS:
        raise InputError(f"The rows of the CSV are by {csv_by!r}; it must be one of {', '.join(ROWS)}.")
    for path in (plot, csv):
        if path is not None and not path.parent.is_dir():
            raise InputError(f"The file {path} cannot be written: the folder {path.parent} does not exist.")


def write_outputs(result: "Result | Comparison", plot: Path | None, csv: Path | None, csv_by: str) -> None:
    """Write the picture and the CSV that were asked for, in the unit of the game."""
    if plot is not None:
        picture = io.BytesIO()
        result.plot().savefig(picture, format=plot.suffix.lower()[1:], dpi=160)
        write_atomically(plot, picture.getvalue(), READABLE)
    if csv is not None:
        from partage.simulate.in_unit import frame_in_unit

        frame = frame_in_unit(result.frame(csv_by), result.game.unit)
        write_atomically(csv, frame.write_csv().encode(), READABLE)
