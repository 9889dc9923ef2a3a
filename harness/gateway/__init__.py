"""The one way to a model: request → cache → budget → limits → call → record.

- What is asked and answered: ``settings`` (what a backbone is), ``request`` (a question, and its key), ``tools`` (calls of tools),
  ``formats`` (how a server takes a schema), ``reply`` and ``objects`` (what came back), ``result`` (what callers get).
- When a request leaves: ``limits``, with ``pace`` (limits that are known), ``learned`` (one that nobody names), ``turns`` (between
  cells), ``health`` (an endpoint in trouble) and ``shares`` (between sessions of a cluster).
- How it is sent: ``sender``, with ``retry`` (what is tried again), ``patience`` and ``typical`` (how long a reply is waited for) and
  ``wire`` (HTTP); or ``batches`` and ``batch_log`` (the batch API).
- What is kept: ``cache`` (replies and payments), ``budget`` and ``paying`` (money).
- ``core`` is the gateway, pure asyncio; ``actor`` its Ray actor, one an endpoint; ``client`` the handle that cells carry.

Import from the modules: this file stays empty so that building a request does not load an HTTP client.
"""
