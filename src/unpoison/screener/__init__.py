"""The shell around a defense: what comes in, what is cut, whose sources are blocked, how long it may take."""
