"""How a screening is drawn: on a terminal, and as one page."""
