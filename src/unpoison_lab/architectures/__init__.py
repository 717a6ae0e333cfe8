"""Published ways in which passages reach the model: REPLUG, Self-RAG."""
