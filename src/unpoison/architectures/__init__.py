"""How passages reach the model: plain RAG, REPLUG, Self-RAG."""
