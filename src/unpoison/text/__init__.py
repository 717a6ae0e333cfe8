"""What a text says: canonical reading, words, sentences, answers, and the checks of texts."""
