"""How passages reach the model: plain retrieval and generation, REPLUG, Self-RAG."""
