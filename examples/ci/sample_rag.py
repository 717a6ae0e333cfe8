"""The target of `redteam.yaml`: the built-in sample behind Guard."""

from unpoison import Guard, Rag
from unpoison.retrieval import BM25Retriever
from unpoison_lab.evaluation.datasets import load

passages = [one.passage for example in load("sample") for one in example.passages_by_label("clean", "gold")]
rag = Rag(BM25Retriever(passages), Guard(generator="extractive"), k=5)
