"""Names and codes: found in the forms people write, replaced consistently, and nothing else touched."""

from __future__ import annotations

import pytest

from harness.records import Stock
from methods.probes import names
from methods.probes.names import Security

MOUTAI = Security("贵州茅台", "600519.SH")
APPLE = Security("Apple Hospitality REIT, Inc.", "APLE.US")
TMOBILE = Security("T-Mobile US, Inc.", "TMUS.US")
T = Security("AT&T Inc.", "T.US")
DISH = Security("DISH", "DISH.US")


def masked(text: str, *securities: Security) -> str:
    own, *others = securities
    return names.replaced(text, names.masks(own, others))


@pytest.mark.parametrize(
    ("text", "expected", "who"),
    [
        ("贵州茅台(600519.SH)公告", "公司A(CODE-A)公告", MOUTAI),
        ("贵州茅台酒股份有限公司", "公司A", MOUTAI),
        ("SH600519、sh.600519、600519.SS、600519", "CODE-A、CODE-A、CODE-A、CODE-A", MOUTAI),
        ("营收1600519元", "营收1600519元", MOUTAI),
        ("*ST康美、康美今日停牌", "公司A、公司A今日停牌", Security("*ST康美", "600518.SH")),
        ("Apple Hospitality REIT and APPLE HOSPITALITY REIT, INC.", "Company A and Company A", APPLE),
        ("Apple Hospitality REIT's (NYSE: APLE) rooms", "Company A's (CODE-A) rooms", APPLE),
        ("T-Mobile US, Inc. (NASDAQ:TMUS), T-Mobile, $TMUS", "Company A (CODE-A), Company A, $CODE-A", TMOBILE),
        ("AT&T (NYSE: T), $T and T cells", "Company A (CODE-A), $CODE-A and T cells", T),
        ("DISH Network Corporation (NASDAQ: DISH)", "CODE-A Network Corporation (CODE-A)", DISH),
        ("Lowe’s and Lowe's", "Company A and Company A", Security("Lowe's Companies, Inc.", "LOW.US")),
        ("a pineapple and apples", "a pineapple and apples", APPLE),
    ],
)
def test_every_form_is_masked(text: str, expected: str, who: Security) -> None:
    assert masked(text, who) == expected


def test_others_get_their_own_mark_wherever_they_stand() -> None:
    stocks = {s.code: Stock(s.code, s.name) for s in (MOUTAI, Security("五粮液", "000858.SZ"), TMOBILE)}
    text = "五粮液与贵州茅台签约，五粮液(000858.SZ)涨停"
    found = names.mentioned(text, stocks, besides=MOUTAI.code)
    assert [s.name for s in found] == ["五粮液"]
    assert masked(text, MOUTAI, *found) == "公司B与公司A签约，公司B(CODE-B)涨停"


def test_a_swap_keeps_the_form_of_a_code() -> None:
    other = Security("五粮液", "000858.SZ")
    text = names.replaced("贵州茅台 600519.SH 600519", [(MOUTAI, other)])
    assert text == "五粮液 000858.SZ 000858"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("AMETEK, Inc. (NYSE: AME) announced", "AMETEK"),
        ("today DISH Network Corporation (NASDAQ: AME) said", "DISH Network"),
        ("the firm (NYSE: AME) and Others, Inc. (NYSE: OTH)", None),
        ("no code at all", None),
    ],
)
def test_a_name_is_learned_from_the_text_where_the_benchmark_has_none(text: str, name: str | None) -> None:
    found = names.told_name(text, Security("AME", "AME.US"))
    assert (found.name if found else None) == name


def test_what_is_the_same_name() -> None:
    assert names.same_name("T-Mobile", "T-Mobile US, Inc.")
    assert names.same_name("贵州茅台股份有限公司", "贵州茅台")
    assert names.same_name("the Boeing Co", "Boeing") is False, "an article is written with a capital in a name"
    assert not names.same_name("", "Apple")
    assert not names.same_name("T", "AT&T")
