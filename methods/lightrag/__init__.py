"""LightRAG: a graph of entities and relations, searched by keywords of two levels."""
