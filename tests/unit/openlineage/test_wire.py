"""Variations of producers are accepted; an event without meaning is rejected with the field."""

from __future__ import annotations

import hashlib
import json

import pytest
from msgspec import UNSET
from tests.openlineage import dataset, dataset_event, encode, job_event, parsed, run_event

from downriver.errors import InvalidEventError
from downriver.model.facts import RunState
from downriver.openlineage import parse_event, split_events
from downriver.openlineage.wire import parse_time, render_time


def refused(raw: bytes) -> InvalidEventError:
    with pytest.raises(InvalidEventError) as caught:
        parse_event(raw)
    return caught.value


class TestTakenIn:
    def test_an_event_keeps_its_bytes_as_sent_and_is_known_by_their_hash(self):
        raw = b'  {"eventTime": "2026-01-01T12:00:00Z",\n "job": {"namespace":"a","name":"b"}}\n'
        event = parse_event(raw)
        assert event.raw == raw
        assert event.ref.digest == hashlib.sha256(raw).digest()

    def test_the_three_kinds_of_events_are_recognised_by_their_content(self):
        run = parsed(run_event()).wire
        job = parsed(job_event("load")).wire
        table = parsed(dataset_event("orders")).wire
        assert (run.run is UNSET, run.job is UNSET) == (False, False)
        assert (job.run is UNSET, job.job is UNSET, job.dataset is UNSET) == (True, False, True)
        assert (table.job is UNSET, table.dataset is UNSET) == (True, False)

    @pytest.mark.parametrize("state", ["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"])
    def test_all_six_event_types_in_any_case(self, state):
        assert parsed(run_event(state=state)).state is RunState[state]
        assert parsed(run_event(state=state.lower())).state is RunState[state]

    @pytest.mark.parametrize("state", [None, "", "PAUSED"])
    def test_a_missing_or_unknown_event_type_does_not_change_the_state(self, state):
        assert parsed(run_event(state=state)).state is RunState.OTHER

    def test_a_null_event_type(self):
        assert parsed(run_event() | {"eventType": None}).state is RunState.OTHER

    def test_no_schema_url_and_no_producer(self):
        event = run_event()
        assert not {"schemaURL", "producer"} & event.keys()
        parsed(event)

    @pytest.mark.parametrize("producer", ["not a uri", 5, None, {"name": "x"}])
    def test_a_producer_that_is_no_uri(self, producer):
        parsed(run_event() | {"producer": producer, "schemaURL": producer})

    @pytest.mark.parametrize("run", ["run-001", "manual__2026-01-01T00:00:00+00:00", "🚀", "1"])
    def test_a_run_id_that_is_no_uuid(self, run):
        assert parsed(run_event(run=run)).wire.run.runId == run

    @pytest.mark.parametrize("key", ["inputs", "outputs"])
    @pytest.mark.parametrize("value", [None, []])
    def test_null_and_empty_lists(self, key, value):
        parsed(run_event() | {key: value})

    def test_null_facets(self):
        event = run_event(inputs=[dataset("a", facets=None, inputFacets=None)])
        event["run"]["facets"] = event["job"]["facets"] = event["inputs"][0]["facets"] = None
        parsed(event)

    def test_keys_that_openlineage_does_not_have(self):
        parsed(run_event(inputs=[dataset("a", owner="me")]) | {"tenant": {"id": 5}})

    def test_a_facet_may_be_any_json_but_null(self):
        facets = {"b": 1.5, "c": [1, {"d": []}], "e": "text", "": {}}
        sent = {**facets, "a": None}
        assert parsed(run_event(job_facets=sent)).wire.job.facets.keys() == facets.keys()

    def test_the_root_of_a_bucket_has_an_empty_name(self):
        event = parsed(run_event(inputs=[{"namespace": "s3://lake", "name": ""}]))
        assert event.wire.inputs[0].name == ""

    @pytest.mark.parametrize(
        "name", ["größe", "データ", "🦆", "ﷺ", "'; DROP TABLE log; --", 'a"b', "שלום", "a\nb"]
    )
    def test_names_in_any_script_escaped_or_not(self, name):
        event = run_event(job_name=name)
        assert parse_event(json.dumps(event, ensure_ascii=True).encode()).wire.job.name == name
        assert parse_event(json.dumps(event, ensure_ascii=False).encode()).wire.job.name == name

    @pytest.mark.parametrize(
        ("sent", "read"),
        [
            (rb"a\u0000b", "a�b"),
            (rb"a\ud800b", "a�b"),
            (rb"a\udc00b", "a�b"),
            (rb"a\ud800", "a�"),
            (rb"\ud83e\udd86", "🦆"),
            (rb"\uD83E\uDD86", "🦆"),
            (rb"\ud83e\ud83e\udd86\udd86", "�🦆�"),
            (rb"\\u0000", r"\u0000"),
            (rb"\\\u0000", "\\�"),
            (rb"\\ud83e\udd86", r"\ud83e" + "�"),
            (rb"\\\\ud800", r"\\ud800"),
        ],
    )
    def test_what_no_store_can_hold_is_read_as_a_replacement_and_logged_as_sent(self, sent, read):
        raw = encode(run_event(job_name="NAME")).replace(b"NAME", sent)
        event = parse_event(raw)
        assert event.wire.job.name == read
        assert event.raw == raw

    def test_unstorable_escapes_inside_a_facet(self):
        raw = encode(run_event(job_facets={"sql": "X"})).replace(b"X", rb"a\u0000\ud800")
        facet = bytes(parse_event(raw).wire.job.facets["sql"])
        assert json.loads(facet) == "a��"

    def test_an_event_of_several_megabytes(self):
        facet = {"fields": [{"name": f"column_{n}", "type": "string"} for n in range(100_000)]}
        raw = encode(run_event(inputs=[dataset("wide", {"schema": facet})]))
        assert len(raw) > 4_000_000
        assert parse_event(raw).raw == raw


class TestTimes:
    @pytest.mark.parametrize(
        ("text", "moment"),
        [
            ("2026-01-31T08:30:00Z", "2026-01-31T08:30:00Z"),
            ("2026-01-31T08:30:00", "2026-01-31T08:30:00Z"),
            ("2026-01-31 08:30:00", "2026-01-31T08:30:00Z"),
            ("2026-01-31T08:30:00.5", "2026-01-31T08:30:00.500000Z"),
            ("2026-01-31T08:30:00.123456789Z", "2026-01-31T08:30:00.123456Z"),
            ("2026-01-31T23:59:59.999999999Z", "2026-01-31T23:59:59.999999Z"),
            ("2026-01-31T23:59:59.9999999+01:00", "2026-01-31T22:59:59.999999Z"),
            ("2026-01-31T23:59:59.999999999", "2026-01-31T23:59:59.999999Z"),
            ("2026-01-31T08:30:00,1234567Z", "2026-01-31T08:30:00.123456Z"),
            ("2026-01-31T10:30:00+02:00", "2026-01-31T08:30:00Z"),
            ("2026-01-31T10:30:00+0200", "2026-01-31T08:30:00Z"),
            ("2026-01-31T10:30:00+02", "2026-01-31T08:30:00Z"),
            ("2026-01-31T02:00:00-06:30", "2026-01-31T08:30:00Z"),
            ("2026-01-31T08:30Z", "2026-01-31T08:30:00Z"),
            ("2026-01-31", "2026-01-31T00:00:00Z"),
            ("20260131T083000Z", "2026-01-31T08:30:00Z"),
            ("2026-01-31T09:30:00+01:00[Europe/Paris]", "2026-01-31T08:30:00Z"),
            ("2026-01-31t08:30:00z", "2026-01-31T08:30:00Z"),
            ("2026-01-31 08:30:00 UTC", "2026-01-31T08:30:00Z"),
            (" 2026-01-31T08:30:00Z\n", "2026-01-31T08:30:00Z"),
            ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59Z"),
        ],
    )
    def test_every_way_producers_write_a_moment(self, text, moment):
        assert render_time(parsed(run_event(at=text)).ref.at) == moment

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "yesterday",
            "1767225600",
            "2026-13-01T00:00:00Z",
            "2026-02-30T00:00:00Z",
            "2026-01-01T25:00:00Z",
            "2026-01-01T00:00:00+99:00",
            "0001-01-01T00:00:00+14:00",
            "9999-12-31T23:59:59-14:00",
            "9999-12-31T23:59:59-1400",
            "2026-01-01T00:00:00Z; DROP TABLE log",
        ],
    )
    def test_what_is_no_moment_is_refused(self, text):
        error = refused(encode(run_event(at=text)))
        assert error.field == "eventTime"
        assert "ISO 8601" in error.reason

    def test_the_first_and_the_last_moment(self):
        for text in ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"):
            assert render_time(parse_time(text, "eventTime")) == text


class TestRefused:
    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"eventTime": None}, "eventTime"),
            ({"eventTime": 1767225600}, "eventTime"),
            ({"eventTime": {}}, "eventTime"),
            ({"eventType": 5}, "eventType"),
            ({"job": None}, "job"),
            ({"job": "load"}, "job"),
            ({"job": []}, "job"),
            ({"job": {}}, "job.namespace"),
            ({"job": {"namespace": "etl"}}, "job.name"),
            ({"job": {"name": "load"}}, "job.namespace"),
            ({"job": {"namespace": "etl", "name": None}}, "job.name"),
            ({"job": {"namespace": "etl", "name": ["load"]}}, "job.name"),
            ({"job": {"namespace": "etl", "name": ""}}, "job.name"),
            ({"job": {"namespace": 5, "name": "load"}}, "job.namespace"),
            ({"job": {"namespace": "etl", "name": "load", "facets": []}}, "job.facets"),
            ({"run": None}, "run"),
            ({"run": {}}, "run.runId"),
            ({"run": {"runId": None}}, "run.runId"),
            ({"run": {"runId": 7}}, "run.runId"),
            ({"run": {"runId": ""}}, "run.runId"),
            ({"run": {"runId": "r", "facets": "x"}}, "run.facets"),
            ({"inputs": {}}, "inputs"),
            ({"inputs": "orders"}, "inputs"),
            ({"inputs": [None]}, "inputs[0]"),
            ({"inputs": [dataset("a"), {"namespace": "n"}]}, "inputs[1].name"),
            ({"inputs": [dataset("a"), {"name": "n"}]}, "inputs[1].namespace"),
            ({"inputs": [dataset("a"), dataset("b"), dataset(5)]}, "inputs[2].name"),
            ({"inputs": [dataset("a", {"schema": {}}), dataset(None)]}, "inputs[1].name"),
            ({"outputs": [dataset("a"), "orders"]}, "outputs[1]"),
            ({"outputs": [dataset("a") | {"facets": []}]}, "outputs[0].facets"),
            ({"outputs": [dataset("a", outputFacets=1)]}, "outputs[0].outputFacets"),
            ({"eventTime": "２０２６-０１-０１T００:００:００Z"}, "eventTime"),
            ({"dataset": None}, "dataset"),
            ({"dataset": {"namespace": "n"}}, "dataset.name"),
        ],
    )
    def test_the_error_names_the_field(self, change, field):
        error = refused(encode(run_event() | change))
        assert error.field == field
        assert error.reason
        assert str(error).startswith(f"{field}: ")

    @pytest.mark.parametrize("odd", [" " * 10_000_000, "[" * 10_000_000, "+00" + "0" * 10_000_000])
    def test_a_very_long_time_is_refused_at_once_and_not_repeated_whole(self, odd):
        # The test takes minutes if the time grows faster than the length of the text.
        with pytest.raises(InvalidEventError) as caught:
            parsed(run_event(at="20260101" + odd + "x"))
        assert len(str(caught.value)) < 300

    def test_no_event_time(self):
        event = run_event()
        del event["eventTime"]
        assert (refused(encode(event)).field, refused(b"{}").field) == ("eventTime", "eventTime")

    def test_neither_a_job_nor_a_dataset(self):
        error = refused(b'{"eventTime": "2026-01-01T00:00:00Z", "inputs": []}')
        assert error.field == "job"
        assert "no job, run or dataset" in error.reason

    def test_a_run_of_no_job(self):
        event = dataset_event("orders") | {"run": {"runId": "r"}}
        assert refused(encode(event)).field == "job"

    @pytest.mark.parametrize("raw", [b"", b" ", b"{", b'{"eventTime": ', b"{'eventTime': 1}", b"}"])
    def test_bad_json(self, raw):
        error = refused(raw)
        assert error.field == ""
        assert "not valid JSON" in error.reason

    @pytest.mark.parametrize("raw", [b"[]", b"null", b"5", b'"event"'])
    def test_json_that_is_no_object(self, raw):
        assert "expected object" in refused(raw).reason

    @pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
    def test_another_encoding_than_utf_8(self, encoding):
        raw = json.dumps(run_event(job_name="größe"), ensure_ascii=False).encode(encoding)
        assert "not UTF-8" in refused(raw).reason

    def test_invalid_utf_8_in_a_custom_facet_is_refused(self):
        raw = encode(run_event(job_facets={"custom": "X"})).replace(b"X", b"\xff")
        assert "not UTF-8" in refused(raw).reason

    @pytest.mark.parametrize("place", ["custom facet", "key we do not know"])
    def test_json_nested_too_deeply_to_read(self, place):
        event = run_event(job_facets={"custom": "X"})
        if place == "key we do not know":
            event = run_event() | {"extra": "X"}
        raw = encode(event).replace(b'"X"', b"[" * 100_000 + b"]" * 100_000)
        assert "nested too deeply" in refused(raw).reason


class TestSplitting:
    def test_a_single_event_is_itself(self):
        raw = b' \n{"a": 1} '
        assert split_events(raw) == [raw]

    def test_an_array_gives_each_event_as_sent(self):
        first, second = b'{"a":  1}', b'{"b" : [1, "]"]}'
        assert split_events(b"\n[" + first + b" ,\t" + second + b"]") == [first, second]

    def test_an_empty_array_has_no_events(self):
        assert split_events(b"[]") == []

    def test_one_bad_event_does_not_invalidate_the_array(self):
        good = encode(run_event())
        events = split_events(b"[" + good + b', 5, {"job": null}, "\\ud800"]')
        assert events[0] == good
        assert len(events) == 4

    @pytest.mark.parametrize("body", [b"[", b"[{}", b"[{},]", b'[{"a" 1}]'])
    def test_an_array_that_is_not_json_is_refused_whole(self, body):
        with pytest.raises(InvalidEventError, match="not valid JSON"):
            split_events(body)
