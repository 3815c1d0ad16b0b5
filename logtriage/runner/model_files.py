"""A model's own files: config.json, its quantization, and the sizes of its weights from their headers alone.

Nothing is downloaded, and no tensor is read.
"""

from __future__ import annotations

import json
import os
import re
import stat
from typing import TYPE_CHECKING, Any

from logtriage.environment import Model
from logtriage.runner import container
from logtriage.runner.target import expanded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_HUB_ID = re.compile(r"[\w.-]+(?:/[\w.-]+)?")
_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_MAX_JSON = 64 << 20
_MAX_HEADER = 100_000_000  # the format's own limit
_POINTER = b"version https://git-lfs"
_OF_WEIGHTS = (".safetensors", ".bin", ".pt", ".gguf")
_HALVED = {"F32": 2, "F64": 4}
_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")


class UnreadableError(Exception):
    """A file that is not what it should be; the text says which and why."""


def find(
    name: str,
    revision: str | None,
    hub: Mapping[str, Any],
    env: Mapping[str, str],
    cwd: str,
    seen: Mapping[str, str] | None = None,
) -> tuple[str, str]:
    """Return the folder (or file) of a model, or '' and why there is none.

    A model of the hub is looked up among those that were downloaded. `env` and `cwd` are those of the launch; of one in
    a container `seen` are the folders of this machine that it sees, by their path in it.
    """
    if _REMOTE.match(name):
        return "", f"The model {name} is elsewhere, so nothing is known of its files."
    path: str | None = os.path.join(cwd, expanded(name, env))
    cache: str | None = hub_folder(hub, env)
    if seen is not None:
        path, cache = container.outside(str(path), seen), container.outside(str(cache), seen)
        if path is None and (cache is None or not is_of_hub(name)):
            return "", f"The model {name} is in the container alone: --model-config has a folder read."
    if path is not None and os.path.exists(path):
        return path, ""
    if not is_of_hub(name):
        return path or "", ""
    if cache is None:
        return "", f"The model {name} is downloaded into the container: --model-config has a folder read."
    folder = os.path.join(cache, f"models--{name.replace('/', '--')}")
    commit = revision or "main"
    reference = os.path.join(folder, "refs", commit)
    if os.path.isfile(reference):
        with open(reference, encoding="utf-8", errors="replace") as file:
            commit = file.read(200).strip()
    snapshot = os.path.join(folder, "snapshots", commit)
    if os.path.isdir(snapshot):
        return snapshot, ""
    return "", f"The model {name} is not in {cache}: it would be downloaded first, and its sizes are not known."


def is_of_hub(name: str) -> bool:
    """Return whether a name may be that of a model of the hub, and not of a folder."""
    return bool(_HUB_ID.fullmatch(name)) and not name.startswith(".")


def is_download(path: str) -> bool:
    """Return whether a folder is a snapshot among the downloaded models, which SGLang completes by itself."""
    return f"{os.sep}snapshots{os.sep}" in path and f"{os.sep}models--" in path


def is_offline(env: Mapping[str, str]) -> str | None:
    """Return the variable that forbids downloads, or None."""
    return next((name for name in _OFFLINE if env.get(name, "").upper() in ("1", "TRUE", "YES", "ON")), None)


def hub_folder(hub: Mapping[str, Any], env: Mapping[str, str]) -> str:
    """Return the folder that models of the hub are downloaded to."""
    for item in hub["variables"]:
        if env.get(item["variable"]):
            return os.path.join(expanded(env[item["variable"]], env), item["below"])
    return os.path.join(env.get("HOME") or os.path.expanduser("~"), hub["home"])


def read(path: str, known: Mapping[str, Any]) -> Model:
    """Return what a folder (a ``config.json`` or a ``.gguf`` file, too) tells of a model; faults are part of it."""
    if not os.path.exists(path):
        return Model(path, faults=(f"{path} does not exist",))
    if path.endswith(".gguf"):
        return Model(path, quantization="gguf", method="gguf", weight_bytes=os.path.getsize(path))
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    config_file = os.path.join(path, "config.json") if os.path.isdir(path) else path
    try:
        config = _json(config_file) if os.path.exists(config_file) else None
    except UnreadableError as error:
        return Model(path, faults=(str(error),))
    if config is None and not os.path.exists(os.path.join(folder, "params.json")):
        return Model(path, faults=(f"{config_file} does not exist",))
    config = config or {}
    weights, faults = _weights(folder) if os.path.isdir(path) else (None, [])
    method, algo, block = _quantization(config, folder)
    value = None if config == {} else "unquant"
    if method is not None:
        value = next((item["value"] for item in known["quantizations"] if
                      item["method"] == method and item["algo"] in (None, algo)), None)  # fmt: skip
    architectures = config.get("architectures")
    return Model(
        path=path,
        architecture=str(architectures[0]) if isinstance(architectures, list) and architectures else None,
        config=_sizes(config, known),
        quantization=value,
        method=" ".join(part for part in (method, algo) if part) or None,
        block=block,
        weight_bytes=weights,
        weight_faults=tuple(faults),
        remote_code=bool(config.get("auto_map")),
    )


def _sizes(config: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, int]:
    parts = [config.get(name) for name in known["nested"]]
    inner = next((part for part in parts if isinstance(part, dict)), {})
    found = {}
    for size, names in known["config"].items():
        values = (source.get(name) for source in (inner, config) for name in names)
        value = next((value for value in values if isinstance(value, int) and not isinstance(value, bool)), None)
        if value is not None:
            found[size] = value
    scales = [source.get(name) for source in (inner, config) for name in known["position_scales"]]
    if any(isinstance(scale, dict) and scale.get("factor") for scale in scales):
        found.pop("context", None)  # it is larger then, by rules of each kind of scale
    return found


def _quantization(config: Mapping[str, Any], folder: str) -> tuple[str | None, str | None, tuple[int, ...]]:
    """Method, algorithm and block size, from config.json or the file that ModelOpt writes."""
    parts = [config, *(part for part in config.values() if isinstance(part, dict))]
    keys = ("quantization_config", "compression_config")
    told: Mapping[str, Any] = next((part[key] for part in parts for key in keys if isinstance(part.get(key), dict)), {})
    method, algo, block = told.get("quant_method"), told.get("quant_algo"), told.get("weight_block_size")
    own = os.path.join(folder, "hf_quant_config.json")
    if algo is None and os.path.exists(own):
        try:
            inner = _json(own).get("quantization")
        except UnreadableError:
            inner = None
        if isinstance(inner, dict):
            method, algo = method or "modelopt", inner.get("quant_algo")
    sizes = tuple(block) if isinstance(block, list) and all(isinstance(size, int) for size in block) else ()
    return (str(method) if method else None), (str(algo) if algo else None), sizes


def has_weights(path: str) -> bool:
    """Return whether a folder holds any file of weights; a path to a file is taken for one that does."""
    return not os.path.isdir(path) or any(name.endswith(_OF_WEIGHTS) for name in os.listdir(path))


def _weights(folder: str) -> tuple[int | None, list[str]]:
    """Bytes of all tensors, and what is wrong with the files that should hold them."""
    names = sorted(name for name in os.listdir(folder) if name.endswith(".safetensors"))
    index = os.path.join(folder, "model.safetensors.index.json")
    if os.path.exists(index):
        try:
            table = _json(index).get("weight_map")
        except UnreadableError as error:
            return None, [str(error)]
        if isinstance(table, dict) and table:
            names = sorted({str(name) for name in table.values()})
    else:
        names = [name for name in names if not name.startswith("consolidated")] or names
    if not names:
        others = [name for name in os.listdir(folder) if re.fullmatch(r"pytorch_model.*\.bin|.*\.(?:pt|gguf)", name)]
        if not others:
            return None, [f"{folder} holds no weights (no .safetensors file)"]
        return sum(os.path.getsize(os.path.join(folder, name)) for name in others), []
    return _summed(os.path.join(folder, name) for name in names)


def _summed(paths: Iterable[str]) -> tuple[int | None, list[str]]:
    total, faults = 0, []
    for path in paths:
        try:
            total += tensor_bytes(path)
        except UnreadableError as error:
            faults.append(str(error))
    return (None if faults else total), faults


def tensor_bytes(path: str) -> int:
    """Return the bytes that the tensors of a safetensors file take when loaded. Raises UnreadableError.

    Only its header is read. SGLang loads numbers of 32 bits as 16 unless it is told otherwise.
    """
    try:
        size = _size(path)
        with open(path, "rb") as file:
            head = file.read(len(_POINTER))
            if head == _POINTER:
                raise UnreadableError(f"{path} is a Git LFS pointer, the weights themselves were not fetched")
            length = int.from_bytes(head[:8], "little")
            if len(head) < 8 or length > min(_MAX_HEADER, size - 8):
                raise UnreadableError(f"{path} is cut, or no safetensors file ({size} bytes)")
            file.seek(8)
            header = json.loads(file.read(length))
    except OSError as error:
        raise UnreadableError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"{path} has a broken header") from error
    try:
        spans = [item["data_offsets"] for name, item in header.items() if name != "__metadata__"]
        end = max((int(span[1]) for span in spans), default=0)
        total = sum(_loaded(item) for name, item in header.items() if name != "__metadata__")
    except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
        raise UnreadableError(f"{path} has a broken header") from error
    if 8 + length + end > size:
        raise UnreadableError(f"{path} is cut: it has {size} of {8 + length + end} bytes")
    return total


def _loaded(item: Mapping[str, Any]) -> int:
    start, end = item["data_offsets"]
    return (int(end) - int(start)) // _HALVED.get(str(item.get("dtype")), 1)


def _size(path: str) -> int:
    """Bytes of a file; what is none, such as a pipe that nobody writes to, must not be opened. Raises OSError."""
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        raise UnreadableError(f"{path} is no file")
    return found.st_size


def _json(path: str) -> dict[str, Any]:
    try:
        if _size(path) > _MAX_JSON:
            raise UnreadableError(f"{path} is too large to be read")
        with open(path, "rb") as file:
            data = json.load(file)
    except OSError as error:
        raise UnreadableError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"{path} is no JSON: {error}") from error
    if not isinstance(data, dict):
        raise UnreadableError(f"{path} holds no JSON object")
    return data
