"""MemGPT: an agent that edits its own context, pages what does not fit, and is fed one event a record."""
