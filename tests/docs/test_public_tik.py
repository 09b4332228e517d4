"""The data of the page of public TIK operators says what it can."""

from collections import Counter

from tools.evidence.public_tik import OUTCOMES, page, rows


def test_every_operator_has_an_outcome_and_a_refused_one_a_reason():
    found = rows()
    assert len({(row["repository"], row["path"]) for row in found}) == len(found) == 320
    assert {row["outcome"] for row in found} <= set(OUTCOMES)
    assert all(row.get("why") for row in found if row["outcome"] == "refused")


def test_the_page_counts_its_rows():
    text = page()
    for outcome, count in Counter(row["outcome"] for row in rows()).items():
        assert f"| {outcome} | {count} |" in text
        assert text.count(f" | {outcome} | ") >= count
