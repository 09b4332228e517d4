"""How much an instruction may move: parameters in their ranges that ask for terabytes together."""

import pytest

from isa.test_catalogue import RANGES, example, execute, violations

EXTENTS = {
    *("repeat", "n_burst", "len_burst", "blk_num", "n_value", "d_value", "m_size", "n_size"),
    *("nd_num", "m_extension", "k_extension", "m_step", "k_step", "x_step", "y_step"),
    *("hw_size", "c_size"),
}
"""Parameters that say how much is moved."""


@pytest.mark.parametrize("name", [n for n, row in RANGES.items() if EXTENTS & set(row)])
@pytest.mark.parametrize("edge", [1, 64])
@pytest.mark.thinned(4)
def test_the_largest_extents_do_not_exhaust_the_machine(name, edge):
    """Each is in its range (a multiple of `edge` there); the product may be terabytes."""
    largest = {f: row[1] // edge * edge for f in EXTENTS if (row := RANGES[name].get(f))}
    template = example(name, **{f: value for f, value in largest.items() if value})
    if not violations(template):
        assert sum(template.offsets(o.name).size for o in template.operands()) < 2**26


def test_what_extents_ask_for_together_is_stated():
    template = example("copy_gm_to_ubuf", n_burst=4095, len_burst=65535)
    message = (
        "copy_gm_to_ubuf must move at most 16777216 B, more than all memories of a core hold, "
        "got 8587706400 B"
    )
    assert violations(template) == [message]
    assert execute(template).messages == [f"parameter: {message}"]
