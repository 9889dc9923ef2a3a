"""The one way to a model: request → cache → budget → limits → call → record.

Modules: ``settings`` (what a backbone is), ``request`` (what is asked, and its key), ``reply`` (what came back),
``objects`` (JSON objects in running text), ``cache``, ``budget``, ``paying`` (what calls cost), ``limits``, ``retry``, ``wire`` (HTTP), ``formats`` (how a server takes a schema),
``core`` (the gateway, pure asyncio) and ``actor`` (its Ray actor, one an endpoint). Import from the modules: this file stays
empty so that building a request does not load an HTTP client.
"""
