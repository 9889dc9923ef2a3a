"""HyperGraphRAG: segments of text as hyperedges over the entities they name."""
