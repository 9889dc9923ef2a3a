"""Phrases: how a name is written as a node, and which are long enough to have synonyms.

The official code keeps ASCII letters and digits only, so every Chinese phrase becomes the empty one and the graph a single
node. ``unicode`` keeps the letters and digits of every script; on ASCII text both give the same.
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum

_ASCII_OTHER = re.compile(r"[^a-z0-9 ]")
_OTHER = re.compile(r"[\W_]")
_CJK = re.compile(r"[぀-ヿ㐀-䶿一-鿿豈-﫿가-힯]")


class Normalise(StrEnum):
    """Which letters of a phrase are kept."""

    UNICODE = "unicode"
    ASCII = "ascii"


def phrase(text: str, how: Normalise = Normalise.UNICODE) -> str:
    """``text`` as a node: lower case, what is neither letter nor digit as a space, stripped. May be empty."""
    if how is Normalise.ASCII:
        return _ASCII_OTHER.sub(" ", text.lower()).strip()
    return _OTHER.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()


def has_synonyms(name: str, how: Normalise = Normalise.UNICODE) -> bool:
    """Whether the normalised ``name`` is long enough for its neighbours to mean the same: > 2 letters, or > 1 if Chinese."""
    if how is Normalise.ASCII:
        return len(re.sub(r"[^A-Za-z0-9]", "", name)) > 2
    return len(_CJK.findall(name)) > 1 or len(_OTHER.sub("", name)) > 2
