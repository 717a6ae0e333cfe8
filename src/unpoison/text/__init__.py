"""Text analysis: canonical reading, words, sentences, answers, and checks of texts."""
