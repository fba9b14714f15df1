"""The signs of dialects are only searched in texts that have one of their words."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from downriver.capture.sql.text import dialect
from downriver.capture.sql.text.dialect import guess_dialect

_ASCII = st.characters(codec="ascii")


@pytest.mark.parametrize("sign", dialect._compiled(), ids=lambda sign: sign.pattern.pattern)
def test_each_match_of_a_sign_has_one_of_its_words(sign: dialect._CompiledSign) -> None:
    @settings(max_examples=30, database=None, deadline=None)
    @given(st.from_regex(sign.pattern, alphabet=_ASCII))
    def check(text: str) -> None:
        assert sign.may_match(text, dialect.vocabulary_of(text))

    check()


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select * from t where a(+) = b", "oracle"),
        ("SEL a FROM t;", "teradata"),
        ("create volatile table v as (select 1)", "teradata"),
        ("from t |> where a = 1", "bigquery"),
        ("select top (3) a from t", "tsql"),
        ("select a::int, b::text, c->>'x' from t", "postgres"),
        ("do $body$ begin null; end $body$", "postgres"),
        ("select columns(c -> c like 'a%') from t", "duckdb"),
        ("create or replace transient table t as select 1", "snowflake"),
        ("select a from t", ""),
    ],
)
def test_a_sign_decides_the_dialect(sql: str, expected: str) -> None:
    assert guess_dialect(sql) == expected
