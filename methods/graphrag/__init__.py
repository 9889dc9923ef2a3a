"""GraphRAG (local and global search): entities and relations exact as of T, communities and reports of the last grid point."""
