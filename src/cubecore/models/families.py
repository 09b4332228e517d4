"""The families whose configs are read, by the `model_type` of the config."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from cubecore.errors import did_you_mean, refuse
from cubecore.models.config import Config, read_config
from cubecore.models.decoder import Decoder
from cubecore.models.deepseek import deepseek
from cubecore.models.experts import glm4_moe, mixtral, qwen2_moe, qwen3_moe
from cubecore.models.glm import chatglm, glm
from cubecore.models.llama import gemma, llama, qwen2, qwen3
from cubecore.models.phi import phi, phi3

FAMILIES: Mapping[str, Callable[[Config], Decoder]] = {
    "chatglm": chatglm,
    "deepseek_v2": deepseek,
    "deepseek_v3": deepseek,
    "gemma": gemma,
    "gemma2": gemma,
    "gemma3": gemma,
    "gemma3_text": gemma,
    "glm": glm,
    "glm4": glm,
    "glm4_moe": glm4_moe,
    "llama": llama,
    "mistral": llama,
    "mixtral": mixtral,
    "phi": phi,
    "phi3": phi3,
    "phimoe": mixtral,
    "qwen2": qwen2,
    "qwen2_moe": qwen2_moe,
    "qwen3": qwen3,
    "qwen3_moe": qwen3_moe,
}
"""By `model_type`: what reads the config."""


_NORMS: Mapping[str, Mapping[str, Any]] = {
    "gemma2": {"norms": 4},
    "gemma3": {"norms": 4, "head_norms": True},
    "gemma3_text": {"norms": 4, "head_norms": True},
    "glm4": {"norms": 4},
    "phi": {"norm": "layer_norm", "norms": 1},
    "phimoe": {"norm": "layer_norm"},
    "qwen3": {"head_norms": True},
    "qwen3_moe": {"head_norms": True},
}
"""The norms of families that have others than two RmsNorms a layer."""


def read_decoder(config: object) -> Decoder:
    """Return the decoder of a config: a file, its folder, or a mapping of its fields.

    Raises
    ------
    RequestError
        If the config cannot be read, its family is not known, or a field is missing or wrong.
    """
    fields = read_config(config)
    family = fields.text("model_type")
    if family not in FAMILIES:
        known = ", ".join(FAMILIES)
        near = did_you_mean(family, FAMILIES)
        raise refuse(f"{fields.where}: model_type", f"be one of {known}", repr(family), near)
    return replace(FAMILIES[family](fields), **_NORMS.get(family, {}), **_of_checkpoint(fields))


_TYPE_FIELDS = ("torch_dtype", "dtype")
"""The fields that name the type of the checkpoint's weights: of transformers 4, and of 5."""
_LIMIT_FIELDS = ("max_position_embeddings", "seq_length")
"""The fields that give the longest context: the usual one, and ChatGLM's."""
_QUANTISED = "quantization_config"
_TIED = frozenset({"gemma", "gemma2", "gemma3", "gemma3_text"})
"""The families whose embedding is the head's weight where the config does not say so."""


def _of_checkpoint(fields: Config) -> dict[str, Any]:
    """Return what a config says of the checkpoint as a whole, as fields of `Decoder`."""
    family = fields.text("model_type")
    parts = [fields, *([fields.within("text_config")] if fields.has("text_config") else [])]
    said: dict[str, Any] = {}
    for part in parts:
        for name in (name for name in _TYPE_FIELDS if part.has(name)):
            said |= {"stored_type": part.type_name(name), "type_field": name}
        for name in (name for name in _LIMIT_FIELDS if part.has(name)):
            said |= {"context_limit": part.whole(name), "limit_field": name}
    if fields.has(_QUANTISED):
        method = fields.within(_QUANTISED)
        said["quantised"] = method.text("quant_method") if method.has("quant_method") else "unnamed"
    return {**said, "tied": fields.flag("tie_word_embeddings", default=family in _TIED)}
