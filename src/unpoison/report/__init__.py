"""How a screening is drawn: on a terminal, as one page."""
