"""The settings of a benchmark by the name of its YAML, for commands that run no experiment."""

from __future__ import annotations

from pathlib import Path

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.object_type import ObjectType
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from benchmarks.params import Parameters, parse
from harness.errors import ConfigError

CONF = Path(__file__).resolve().parent.parent / "conf"


def parameters_of(name: str, root: str | None) -> Parameters:
    """The checked parameters of ``conf/benchmark/<name>.yaml``, below ``root`` if one is given.

    Raises:
        ConfigError: no such YAML, or a wrong key or value in it.
    """
    with initialize_config_dir(str(CONF), version_base="1.3"):
        known = sorted(GlobalHydra.instance().config_loader().get_group_options("benchmark", ObjectType.CONFIG))
        if name not in known:
            raise ConfigError(
                f"no benchmark {name!r}: {CONF / 'benchmark'} has {', '.join(known)}; write {name}.yaml there or choose one"
            )
        try:
            composed = compose(overrides=[f"+benchmark={name}"])
            values = OmegaConf.to_container(composed.benchmark, resolve=True, throw_on_missing=True)
        except (HydraException, OmegaConfBaseException) as error:
            raise ConfigError(f"conf/benchmark/{name}.yaml: {error}") from None
    assert isinstance(values, dict)
    settings = {str(key): value for key, value in values.items() if key != "_target_"}
    return parse(settings if root is None else {**settings, "root": root})
