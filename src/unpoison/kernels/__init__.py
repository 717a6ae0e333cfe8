"""Arrays and tokens in, arrays out. A kernel knows no passage, no model and no query."""
