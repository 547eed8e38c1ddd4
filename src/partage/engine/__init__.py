"""How a game is played: the plain reference, and the compiled engine that equals it."""
