"""Write the checkpoint that the multilingual reader starts from: multilingual-e5-small with its vocabulary pruned.

    python -m benchmarks reader_checkpoint evaluation-data FOLDER

The pieces are all single signs, the likeliest ones, and those that questions and passages of the training need, each
language counting alike. `train_reader.py --start FOLDER` reads it as it reads any checkpoint of BERT's kind.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, processors

from benchmarks.data_option import evaluation_folder
from benchmarks.training.injection_network import HEADS, INNER, LAYERS, WIDTH, prune
from benchmarks.training.reader_data import training
from benchmarks.training.split import rows
from benchmarks.training.train_injections import e5_file

PIECES = 60_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=evaluation_folder, help="the evaluation data")
    parser.add_argument("output", type=Path)
    options = parser.parse_args()
    texts = [(row["lang"], row["text"]) for row in rows(options.folder / "clean_languages.jsonl")]
    for pairs in training(options.folder).values():
        texts += [(pair.source, f"{pair.question} {pair.text}") for pair in pairs]
    prune(e5_file(), texts, PIECES, options.output)
    _frame(options.output / "tokenizer.json")
    state = torch.load(options.output / "body.pt", weights_only=True)
    save_file({name: value.contiguous() for name, value in state.items()}, options.output / "model.safetensors")
    (options.output / "body.pt").unlink()
    config = {
        "model_type": "bert", "architectures": ["BertModel"], "hidden_size": WIDTH, "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS, "intermediate_size": INNER, "hidden_act": "gelu", "pad_token_id": 1,
        "vocab_size": len(state["embeddings.word_embeddings.weight"]),
        "max_position_embeddings": len(state["embeddings.position_embeddings.weight"]),
        "type_vocab_size": len(state["embeddings.token_type_embeddings.weight"]), "layer_norm_eps": 1e-12,
    }  # fmt: skip
    (options.output / "config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")


def _frame(file: Path) -> None:
    """Put the marks of XLM-RoBERTa around a question and a passage: `<s> q </s></s> p </s>`."""
    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s>:1 $B:1 </s>:1", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.save(str(file), pretty=False)


if __name__ == "__main__":
    main()
