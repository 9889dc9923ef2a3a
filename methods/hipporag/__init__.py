"""HippoRAG (v1 and v2): passages ranked by personalised PageRank over a graph of phrases, rebuilt as of every T."""
