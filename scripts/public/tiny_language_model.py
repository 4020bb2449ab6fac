"""A language model of 64 words with its tokenizer, made in memory, for programs that load one from a folder."""

from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

WORDS = [f"w{i}" for i in range(61)]
SENTENCES = [" ".join(WORDS[(7 * i + 3 * j) % 61] for j in range(12)) for i in range(64)]


def tokenizer() -> PreTrainedTokenizerFast:
    """A word is a token."""
    known = {word: i for i, word in enumerate(["[UNK]", "[PAD]", "[EOS]", *WORDS])}
    plain = Tokenizer(models.WordLevel(known, unk_token="[UNK]"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=plain, unk_token="[UNK]", pad_token="[PAD]", eos_token="[EOS]", model_max_length=64
    )


def model() -> LlamaForCausalLM:
    """Two layers of 32."""
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=64, max_position_embeddings=64, eos_token_id=2, **sizes))


def save(folder: Path) -> None:
    """Writes both as `from_pretrained` reads them."""
    model().save_pretrained(folder)
    tokenizer().save_pretrained(folder)
