"""Calls to actors with the exceptions of the code behind them."""

from __future__ import annotations

from typing import Any

import ray

from harness.errors import HarnessError


async def unwrapped(reference: Any) -> Any:
    """The result of a remote call.

    Raises:
        HarnessError: the actor's process is gone.
        Exception: what the call itself raised, without Ray's wrapper.
    """
    try:
        return await reference
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayActorError as error:
        raise HarnessError(f"a process of the session died ({error}); what was finished is kept") from None
