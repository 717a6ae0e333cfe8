"""How passages reach the model."""
