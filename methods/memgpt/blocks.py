"""MemGPT's working context: two named blocks of text that the agent edits by itself, each of bounded length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PERSONA, HUMAN = "persona", "human"
BLOCKS = (PERSONA, HUMAN)
BLOCK_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class Blocks:
    """The texts of the blocks, and how many characters each may have."""

    persona: str
    human: str
    persona_limit: int = BLOCK_CHARS
    human_limit: int = BLOCK_CHARS

    def text(self, name: str) -> str:
        """Raises KeyError: no block has that name."""
        return {PERSONA: self.persona, HUMAN: self.human}[name]

    def append(self, name: str, content: str) -> Blocks:
        """``content`` on a new line at the end of a block.

        Raises:
            KeyError: no block has that name.
            ValueError: the block would become too long.
        """
        return self._with(name, f"{self.text(name)}\n{content}")

    def replace(self, name: str, old: str, new: str) -> Blocks:
        """``new`` for every occurrence of ``old`` in a block.

        Raises:
            KeyError: no block has that name.
            ValueError: ``old`` is empty or is not there, or the block would become too long.
        """
        if not old:
            raise ValueError("old_content must not be empty; give the exact text that is to be replaced")
        text = self.text(name)
        if old not in text:
            raise ValueError(f"old_content is not in {name}; give the exact text that is to be replaced")
        return self._with(name, text.replace(old, new))

    def _with(self, name: str, text: str) -> Blocks:
        limit = {PERSONA: self.persona_limit, HUMAN: self.human_limit}[name]
        if len(text) > limit:
            raise ValueError(
                f"{name} would have {len(text)} characters, more than its {limit}; shorten it, or use archival memory"
            )
        fields: Mapping[str, str] = {PERSONA: self.persona, HUMAN: self.human, name: text}
        return Blocks(fields[PERSONA], fields[HUMAN], self.persona_limit, self.human_limit)
