"""Balanced-ETC where every agent shares every arm: a baseline."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from partage.rules.balanced_etc import BalancedETC

if TYPE_CHECKING:
    from partage.game import Game


@dataclass(frozen=True)
class FullSharing(BalancedETC):
    """Balanced-ETC where every agent shares every arm: the best that sharing could do."""

    name = "full-sharing"
    summary = "Balanced-ETC where every agent shares every arm."
    live = False

    def prepare(self, game: "Game") -> "Game":
        """Return the game in which everyone shares everything."""
        from partage.sharing import Sharing

        sharing = Sharing.everything(game.agents, len(game.arms)).in_shuffled_order(game.sharing.shuffled)
        return game.with_sharing(sharing)
