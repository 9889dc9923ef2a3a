"""Knobs of the Event-Evidence Hypergraph (paper, Sec. 3)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt


class EehSettings(BaseModel):
    """Knobs of the build.

    Attributes:
        chunk_tokens, chunk_overlap: size of a chunk and what neighbours share, in tokens.
        extract_max_tokens: upper bound of an extraction's reply, which lists much more than a forecast's; None takes the
            endpoint's.
        episode_days: Δ_ep.
        episode_days_of: Δ_ep of benchmarks that have their own, by name.
        max_propositions: cap of a window.
        episode_confidence, theme_confidence: below them the model's yes is a no.
        theme_days, theme_step: length of a theme window and distance of two starts, in days.
        min_episodes: below it there are no themes.
        min_stocks, min_industries: what a cluster spans at least; ``auto`` is 1 if any stock has an industry, else 0.
        max_theme_episodes: cap of a cluster.
        max_themes: cap of the themes at T.
        duplicate_above: cosine of names beyond which two themes are one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    chunk_tokens: int = Field(512, ge=1)
    chunk_overlap: int = Field(64, ge=0)
    extract_max_tokens: int | None = Field(6000, ge=1)
    episode_days: int = Field(14, ge=1)
    episode_days_of: dict[str, int] = Field(default_factory=lambda: {"edt": 30})
    max_propositions: int = Field(7, ge=2)
    episode_confidence: float = Field(0.7, ge=0, le=1)
    theme_days: int = Field(90, ge=1)
    theme_step: int = Field(30, ge=1)
    min_episodes: int = Field(50, ge=0)
    min_stocks: int = Field(2, ge=1)
    min_industries: Literal["auto"] | NonNegativeInt = "auto"
    max_theme_episodes: int = Field(20, ge=2)
    theme_confidence: float = Field(0.6, ge=0, le=1)
    max_themes: int = Field(200, ge=1)
    duplicate_above: float = Field(0.85, ge=0, le=1)

    def of_benchmark(self, name: str) -> EehSettings:
        """The knobs for one benchmark."""
        return self.model_copy(update={"episode_days": self.episode_days_of.get(name, self.episode_days)})
