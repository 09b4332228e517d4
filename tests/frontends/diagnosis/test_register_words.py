"""Findings of vector functions name calls of the language that the kernel is written in."""

import pytest

from cubecore.frontends.diagnosis.dialects import DIALECTS

RACE = (
    "LoadAlign must load bytes of UB behind StoreAlign (k.py:8), which stores them, got no order "
    "between the two in one vector function; call LocalMemBar<MemType::VEC_STORE, "
    "MemType::VEC_LOAD>() or asc_mem_bar(VST_VLD) between them"
)
IN_C = (
    "asc_loadalign must load bytes of UB behind asc_storealign (k.py:8), which stores them, got no "
    "order between the two in one vector function; call "
)
STREAM = "LoadUnAlign must follow LoadUnAlignPre (asc_loadunalign_pre) of its buffer, got none"
CASES = {
    ("cpp", RACE): RACE.replace(" or asc_mem_bar(VST_VLD)", ""),
    ("c", RACE): f"{IN_C}asc_mem_bar(VST_VLD) between them",
    ("python", RACE): f'{IN_C}core.asc_mem_bar("VST_VLD") between them',
    ("cpp", STREAM): "LoadUnAlign must follow LoadUnAlignPre of its buffer, got none",
    ("python", STREAM): "asc_loadunalign must follow asc_loadunalign_pre of its buffer, got none",
    ("python", "Add must read a register"): "asc_add must read a register",
    # one of many names, and a word of the sentence
    ("python", "Cast must convert; Not at all"): "Cast must convert; Not at all",
}


def test_the_call_at_the_line_is_named():
    sentence, calls = "Cast must round by CAST_RINT", ("asc_float2half_rn", "asc_add")
    assert DIALECTS["c"].in_words(sentence, calls) == "asc_float2half_rn must round by CAST_RINT"
    assert DIALECTS["c"].in_words(sentence, ("asc_add",)) == sentence


@pytest.mark.parametrize(("language", "sentence"), CASES)
def test_words(language, sentence):
    assert DIALECTS[language].in_words(sentence) == CASES[language, sentence]
