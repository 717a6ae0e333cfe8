"""What a text says: canonical reading, words, sentences, answers, and checks of texts."""
