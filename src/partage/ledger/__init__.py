"""The pure domain of live play: events, their fold, moves, the hash chain, settlement, verification."""
