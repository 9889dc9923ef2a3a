"""A-MEM: notes that describe themselves, are linked to their neighbours, and change what these say."""
