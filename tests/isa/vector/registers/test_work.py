"""What the vector unit runs of a recorded body: added and hoisted instructions, loops and banks."""

from cubecore.isa.vector.registers.issue.work import Port, work_of
from isa.vector.registers.recorded_body import WIDTH, Body


def names(body):
    table = [call.operation.name for call in body.table]
    return [table[body.rows[each.entry][0]] for each in work_of(body.program())]


def loop_of(trips, lanes):
    """Return a body that adds registers under the masks of counts."""
    body = Body()
    for trip in range(trips):
        mask = body.count(1, lanes[trip])
        x, y = body.load(2, 256 * trip), body.load(3, 8192 + 256 * trip)
        body.store(5, body.call("Add", 4, sources=(x, y), mask=mask), 16384 + 256 * trip, mask)
    return body


def test_a_count_that_falls_is_made_on_each_trip():
    assert names(loop_of(4, [64, 64, 64, 7])).count("UpdateMask") == 4
    assert names(loop_of(4, [64] * 4)).count("UpdateMask") == 4


def test_a_part_that_stays_the_same_is_made_before_the_loop():
    assert names(loop_of(4, [7] * 4)).count("UpdateMask") == 1


def test_a_pattern_is_made_once():
    body = Body()
    for trip in range(4):
        mask = body.call("CreateMask", 1, mode="ALL", dtype=WIDTH)
        body.store(3, body.load(2, 256 * trip), 4096 + 256 * trip, mask)
    assert names(body).count("CreateMask") == 1


def test_a_merging_call_is_followed_by_a_selection_that_needs_the_old_value():
    body = Body()
    mask = body.count(1, 7)
    old, x = body.load(2, 0), body.load(3, 256)
    body.store(5, body.call("Max", 4, mode="MERGING", sources=(old, x, old), mask=mask), 512)
    work = work_of(body.program())
    assert [each.port for each in work] == [
        *(Port.COMPUTE, Port.LOAD, Port.LOAD, Port.COMPUTE, Port.COMPUTE, Port.STORE)
    ]
    assert set(work[3].needs) == {0, 1, 2}
    assert set(work[4].needs) == {3, 1, 0}
    assert set(work[5].needs) == {4}


def test_the_mask_of_a_count_that_an_unaligned_store_has_is_no_instruction():
    body = Body()
    count = body.count(1, 1)
    body.call("StoreAlign", 2, mode="UNALIGNED", sources=(body.load(3, 0),), mask=count)
    assert names(body) == ["LoadAlign", "StoreAlign"]


def test_a_strided_move_of_eight_blocks_is_one_instruction_of_two_cycles():
    body, value = Body(), 0
    for block in range(8):
        value = body.call(
            "LoadBlock", 1, mode=f"BLOCK{block}", sources=(value,), address=64 * block
        )
    work = work_of(body.program())
    assert [(each.entry, each.cycles) for each in work] == [(0, 2)]


def test_loops_begin_with_the_first_call_of_their_first_trip():
    work = work_of(loop_of(4, [64, 64, 64, 7]).program())
    assert [each.entry for each in work if each.loops] == [0]


def test_banks_are_those_of_the_blocks_that_an_access_touches():
    body = Body()
    for address in (0, 256, 64, 512):
        body.load(1, address)
    banks = [each.banks for each in work_of(body.program())]
    assert banks == [0x00FF, 0xFF00, 0x03FC, 0x00FF]
