"""The live controller: a server that real agents talk to."""
