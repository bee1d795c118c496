"""docs/tensorflow_operators.md: what the front end maps, no more and no less."""

from __future__ import annotations

from parsers.tensorflow import mapped_operators
from parsers.tensorflow.operator_list import PAGE, page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m parsers.tensorflow.operator_list"


def test_every_operator_says_what_becomes_of_it() -> None:
    lines = [line.split(" | ") for line in page().splitlines() if line.startswith("| ")][1:]
    assert [line[0].removeprefix("| ") for line in lines] == mapped_operators()
    assert all(len(line[1].removesuffix(" |")) > 2 for line in lines)
