"""The facts in an event: every facet with lineage, well formed or not."""

from __future__ import annotations

import json

import pytest
from tests.openlineage import (
    DATABASE,
    JOBS,
    Json,
    column_lineage,
    dataset,
    dataset_event,
    encode,
    job_event,
    parsed,
    run_event,
    schema,
    source,
)

from downriver.model.facts import (
    ClaimSeen,
    Derivation,
    EdgeKind,
    EdgeSeen,
    FacetRole,
    FacetSeen,
    Facts,
    NodeSeen,
    RunFact,
    RunState,
)
from downriver.model.ids import ColumnId, DatasetId, JobId, RunId
from downriver.openlineage import fold, parse_event
from downriver.openlineage.facets.column_lineage import parse_derivations
from downriver.openlineage.facets.dataset import SchemaColumn, schema_columns

LOAD = JobId(JOBS, "load")


def table(name: str) -> DatasetId:
    return DatasetId(DATABASE, name)


def folded(*events: Json) -> Facts:
    facts = Facts.empty()
    for event in events:
        facts.update(fold(parsed(event)))
    return facts


def edges(facts: Facts, *kinds: EdgeKind) -> set[EdgeSeen]:
    found = {seen for seen in facts.sightings if isinstance(seen, EdgeSeen)}
    return {edge for edge in found if not kinds or edge.kind in kinds}


def nodes(facts: Facts) -> set[DatasetId | JobId]:
    return {seen.node for seen in facts.sightings if isinstance(seen, NodeSeen)}


def claims(facts: Facts) -> set[ClaimSeen]:
    return {seen for seen in facts.sightings if isinstance(seen, ClaimSeen)}


def derivations(facts: Facts) -> set[Derivation]:
    return {
        derivation
        for claim in claims(facts)
        for derivation in parse_derivations(claim.facet, facts.bodies[claim.digest], claim.dataset)
    }


def derives(target: str, origin: str, *, direct: bool = True, subtype: str = "", **more) -> object:
    """Write `table.column` twice, get the edge."""
    ends = [ColumnId(table(end.split(".")[0]), end.split(".")[1]) for end in (origin, target)]
    return Derivation(ends[0], ends[1], direct, subtype, **more)


class TestRunsJobsAndDatasets:
    def test_a_run_reads_its_inputs_and_writes_its_outputs(self):
        facts = folded(run_event(inputs=[dataset("a"), dataset("b")], outputs=[dataset("c")]))
        assert nodes(facts) == {LOAD, table("a"), table("b"), table("c")}
        assert edges(facts) == {
            EdgeSeen(EdgeKind.READS, table("a"), LOAD),
            EdgeSeen(EdgeKind.READS, table("b"), LOAD),
            EdgeSeen(EdgeKind.WRITES, LOAD, table("c")),
        }

    def test_a_dataset_may_be_read_and_written_by_one_run(self):
        facts = folded(run_event(inputs=[dataset("a")], outputs=[dataset("a")]))
        assert {edge.kind for edge in edges(facts)} == {EdgeKind.READS, EdgeKind.WRITES}

    def test_what_a_run_did_is_observed_and_what_was_declared_is_not(self):
        seen = folded(run_event(inputs=[dataset("a")]))
        told = folded(job_event("load", inputs=[dataset("a")]), dataset_event("b"))
        assert {span.observed for span in seen.sightings.values()} == {True}
        assert {span.observed for span in told.sightings.values()} == {False}

    def test_a_declared_edge_that_happens_becomes_observed(self):
        facts = folded(job_event("load", inputs=[dataset("a")]), run_event(inputs=[dataset("a")]))
        assert facts.sightings[EdgeSeen(EdgeKind.READS, table("a"), LOAD)].observed

    def test_a_job_event_has_no_run(self):
        assert folded(job_event("load", outputs=[dataset("a")])).runs == {}

    def test_a_name_too_long_to_index_is_cut_and_still_its_own(self):
        one, other = "q" * 5000 + "1", "q" * 5000 + "2"
        facts = folded(run_event(inputs=[dataset(one), dataset(other)]))
        names = {node.name for node in nodes(facts) if isinstance(node, DatasetId)}
        assert len(names) == 2
        assert max(len(name.encode()) for name in names) <= 1000


class TestAccumulation:
    def test_events_of_one_run_add_up(self):
        facts = folded(
            run_event(state="START", inputs=[dataset("a")]),
            run_event(state="RUNNING", inputs=[dataset("b")]),
            run_event(state="COMPLETE", outputs=[dataset("c")]),
        )
        assert len(edges(facts)) == 3
        assert list(facts.runs) == [RunId(LOAD, "run-1")]

    def test_an_event_without_inputs_erases_none(self):
        with_inputs = run_event(at="2026-01-01T00:00:00Z", inputs=[dataset("a")])
        for later in ({}, {"inputs": []}, {"inputs": None}):
            facts = folded(with_inputs, run_event(at="2026-01-02T00:00:00Z") | later)
            assert edges(facts) == {EdgeSeen(EdgeKind.READS, table("a"), LOAD)}

    def test_a_facet_that_is_null_is_absent(self):
        """Marquez's API lists the events that it stored with a null for each facet they lack."""
        event = run_event(inputs=[dataset("raw")], outputs=[dataset("orders")])
        null = {"schema": None, "symlinks": None, "columnLineage": None, "lineage": None}
        event["outputs"][0] |= {"facets": null, "outputFacets": {"outputStatistics": None}}
        event["inputs"][0]["inputFacets"] = {"dataQualityMetrics": None}
        event["run"]["facets"] = {"parent": None}
        event["job"]["facets"] = {"lineage": None, "jobDependencies": None}
        plain = run_event(inputs=[dataset("raw")], outputs=[dataset("orders")])
        assert not any(isinstance(seen, FacetSeen) for seen in folded(event).sightings)
        assert folded(event).sightings.keys() == folded(plain).sightings.keys()
        declared = dataset_event("orders")
        declared["dataset"]["facets"] = {"schema": None}
        assert not any(isinstance(seen, FacetSeen) for seen in folded(declared).sightings)

    def test_edges_of_different_runs_unite_each_with_its_first_and_last_sight(self):
        facts = folded(
            run_event(run="1", at="2026-01-01T00:00:00Z", inputs=[dataset("a")]),
            run_event(run="2", at="2026-01-02T00:00:00Z", inputs=[dataset("a"), dataset("b")]),
            run_event(run="3", at="2026-01-03T00:00:00Z", inputs=[dataset("b")]),
        )
        day = 24 * 3600 * 1_000_000
        spans = {edge.source.name: facts.sightings[edge] for edge in edges(facts, EdgeKind.READS)}
        assert spans["a"].last.at - spans["a"].first.at == day
        assert spans["b"].first.at == spans["a"].last.at
        assert spans["b"].last.at - spans["b"].first.at == day

    def test_one_run_id_of_two_jobs_is_two_runs(self):
        facts = folded(run_event("load", run="run-001"), run_event("clean", run="run-001"))
        assert len(facts.runs) == 2


class TestRunState:
    def state_of(self, *events: Json) -> RunFact:
        [fact] = folded(*events).runs.values()
        return fact

    def test_a_late_start_does_not_revert_a_completed_run(self):
        fact = self.state_of(
            run_event(state="COMPLETE", at="2026-01-01T00:00:00Z"),
            run_event(state="START", at="2026-01-01T09:00:00Z"),
        )
        assert fact.state is RunState.COMPLETE

    @pytest.mark.parametrize("end", ["COMPLETE", "ABORT", "FAIL"])
    @pytest.mark.parametrize("early", ["START", "RUNNING", "OTHER", None])
    def test_only_an_end_state_supersedes_an_end_state(self, end, early):
        for at in ("2025-01-01T00:00:00Z", "2027-01-01T00:00:00Z"):
            fact = self.state_of(run_event(state=end), run_event(state=early, at=at))
            assert fact.state is RunState[end]

    def test_the_later_of_two_end_states_counts(self):
        early, late = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
        assert (
            self.state_of(run_event(state="FAIL", at=early), run_event(state="COMPLETE", at=late))
        ).state is RunState.COMPLETE
        assert (
            self.state_of(run_event(state="COMPLETE", at=early), run_event(state="FAIL", at=late))
        ).state is RunState.FAIL

    def test_the_worse_of_two_simultaneous_end_states_counts(self):
        fact = self.state_of(run_event(state="FAIL"), run_event(state="COMPLETE"))
        assert fact.state is RunState.FAIL

    def test_running_supersedes_start_and_a_later_start_does_not_revert_it(self):
        fact = self.state_of(
            run_event(state="START", at="2026-01-01T09:00:00Z"),
            run_event(state="RUNNING", at="2026-01-01T08:00:00Z"),
        )
        assert fact.state is RunState.RUNNING

    def test_a_run_started_at_its_earliest_start(self):
        fact = self.state_of(
            run_event(state="START", at="2026-01-01T09:00:00Z"),
            run_event(state="START", at="2026-01-01T08:00:00Z"),
            run_event(state="RUNNING", at="2026-01-01T07:00:00Z"),
        )
        assert fact.started_at == parsed(run_event(at="2026-01-01T08:00:00Z")).ref.at

    def test_a_run_without_a_start_has_no_known_beginning(self):
        assert self.state_of(run_event(state="COMPLETE")).started_at is None


class TestSchema:
    def columns(self, facet: object) -> list[SchemaColumn]:
        return schema_columns(json.dumps(facet).encode())

    def test_columns_in_order_nested_ones_by_their_path(self):
        facet = {
            "fields": [
                {"name": "id", "type": "int", "description": "key"},
                {
                    "name": "address",
                    "type": "struct",
                    "fields": [
                        {"name": "city", "type": "string"},
                        {"name": "geo", "fields": [{"name": "lat"}, {"name": "lon"}]},
                    ],
                },
                {"name": "at", "type": None, "description": None, "ordinal_position": 3},
            ]
        }
        assert self.columns(facet) == [
            SchemaColumn("id", "int", "key"),
            SchemaColumn("address", "struct", ""),
            SchemaColumn("address.city", "string", ""),
            SchemaColumn("address.geo", "", ""),
            SchemaColumn("address.geo.lat", "", ""),
            SchemaColumn("address.geo.lon", "", ""),
            SchemaColumn("at", "", ""),
        ]

    @pytest.mark.parametrize(
        "facet",
        [None, [], "x", 5, {}, {"fields": None}, {"fields": {}}, {"fields": {"name": "a"}}],
    )
    def test_a_facet_that_is_no_schema_has_no_columns(self, facet):
        assert self.columns(facet) == []

    @pytest.mark.parametrize("odd", [None, 5, [], "id", {}, {"name": ""}, {"name": 5}])
    def test_one_odd_field_does_not_affect_the_others(self, odd):
        facet = {"fields": [{"name": "a"}, odd, {"name": "b", "type": ["x"], "fields": "none"}]}
        assert [column.path for column in self.columns(facet)] == ["a", "b"]

    def test_a_schema_nested_too_deeply_to_repair_affects_no_other_facet(self):
        raw = b'{"fields":[{"name":"a","type":5,"fields":' + b"[" * 900 + b"]" * 900 + b"}]}"
        assert schema_columns(raw) in ([], [SchemaColumn("a", "", "")])


class TestColumnLineage:
    def folded(self, facet: Json, **more: Json) -> Facts:
        outputs = [dataset("out", {"columnLineage": facet, **more})]
        return folded(run_event(outputs=outputs))

    def test_per_field(self):
        facts = self.folded(column_lineage({"x": [source("a", "p"), source("b", "q")]}))
        assert derivations(facts) == {derives("out.x", "a.p"), derives("out.x", "b.q")}

    def test_its_sources_are_read_by_the_job_though_no_input_names_them(self):
        facts = self.folded(column_lineage({"x": [source("a", "p")]}))
        assert EdgeSeen(EdgeKind.READS, table("a"), LOAD) in edges(facts)
        assert table("a") in nodes(facts)

    def test_a_source_beside_the_inputs_that_an_event_names_is_no_input(self):
        stated = column_lineage({"x": [source("a", "p"), source("b", "q")]})
        event = run_event(
            inputs=[dataset("a")], outputs=[dataset("out", {"columnLineage": stated})]
        )
        facts = folded(event)
        assert edges(facts, EdgeKind.READS) == {EdgeSeen(EdgeKind.READS, table("a"), LOAD)}
        assert edges(facts, EdgeKind.DERIVES) == {
            EdgeSeen(EdgeKind.DERIVES, table("b"), table("out"), LOAD)
        }
        assert derivations(facts) == {derives("out.x", "a.p"), derives("out.x", "b.q")}

    def test_a_source_that_is_an_input_under_another_name_is_read(self):
        stated = column_lineage({"x": [source("a", "p")]})
        links = {"symlinks": {"identifiers": [{"namespace": DATABASE, "name": "a"}]}}
        event = run_event(
            inputs=[dataset("/path/of/a", links)],
            outputs=[dataset("out", {"columnLineage": stated})],
        )
        assert edges(folded(event), EdgeKind.DERIVES) == set()

    def test_transformations(self):
        how = [
            {"type": "DIRECT", "subtype": "AGGREGATION", "description": "sum(p)", "masking": True},
            {"type": "INDIRECT", "subtype": "GROUP_BY"},
        ]
        facts = self.folded(column_lineage({"x": [source("a", "p", *how)]}))
        assert derivations(facts) == {
            derives("out.x", "a.p", subtype="AGGREGATION", description="sum(p)", masking=True),
            derives("out.x", "a.p", direct=False, subtype="GROUP_BY"),
        }

    @pytest.mark.parametrize(
        ("kind", "subtype", "masking"),
        [("IDENTITY", "IDENTITY", False), ("MASKED", "TRANSFORMATION", True), (None, "", False)],
    )
    def test_the_legacy_pair(self, kind, subtype, masking):
        entry = {
            "inputFields": [source("a", "p")],
            "transformationType": kind,
            "transformationDescription": "as is",
        }
        assert derivations(self.folded({"fields": {"x": entry}})) == {
            derives("out.x", "a.p", subtype=subtype, description="as is", masking=masking)
        }

    def test_transformations_win_over_the_legacy_pair(self):
        entry = {
            "inputFields": [source("a", "p", {"type": "INDIRECT", "subtype": "FILTER"})],
            "transformationType": "IDENTITY",
        }
        assert derivations(self.folded({"fields": {"x": entry}})) == {
            derives("out.x", "a.p", direct=False, subtype="FILTER")
        }

    def test_wide_fields_are_edges_to_the_whole_dataset(self):
        join = {"type": "INDIRECT", "subtype": "JOIN"}
        facts = self.folded(column_lineage({}, wide=[source("a", "k", join), source("b", "k")]))
        assert derivations(facts) == {
            derives("out.*", "a.k", direct=False, subtype="JOIN"),
            derives("out.*", "b.k", direct=False),
        }
        assert len(edges(facts, EdgeKind.READS)) == 2

    def test_dataset_wide_lineage_that_spark_folds_into_every_field(self):
        how = {"type": "INDIRECT", "subtype": "FILTER", "description": "", "masking": False}
        facet = column_lineage({"x": [source("a", "k", how)], "y": [source("a", "k", how)]})
        assert derivations(self.folded(facet)) == {
            derives("out.x", "a.k", direct=False, subtype="FILTER"),
            derives("out.y", "a.k", direct=False, subtype="FILTER"),
        }

    def test_a_dataset_that_states_its_own_lineage(self):
        facet = column_lineage({"x": [source("a", "p")]})
        facts = folded(dataset_event("out", {"columnLineage": facet}))
        assert {claim.job for claim in claims(facts)} == {None}
        assert edges(facts) == {EdgeSeen(EdgeKind.DERIVES, table("a"), table("out"))}
        assert derivations(facts) == {derives("out.x", "a.p")}

    def test_empty_names_stand_for_the_whole_dataset_or_for_nothing(self):
        facts = self.folded(column_lineage({"x": [source("a", ""), source("", "p")]}))
        assert derivations(facts) == {derives("out.x", "a.*")}

    def test_the_same_input_twice_is_one_edge(self):
        facts = self.folded(column_lineage({"x": [source("a", "p"), source("a", "p")]}))
        claim = next(iter(claims(facts)))
        assert len(parse_derivations(claim.facet, facts.bodies[claim.digest], claim.dataset)) == 1

    @pytest.mark.parametrize(
        "facet",
        [
            None,
            [],
            "fields",
            {},
            {"fields": None},
            {"fields": []},
            {"fields": {"x": None}},
            {"fields": {"x": []}},
            {"fields": {"x": {"inputFields": {"name": "a", "field": "p"}}}},
            {"fields": {"x": {"inputFields": "a.p"}}},
            {"fields": {"x": {"inputFields": [None, 5, "a.p", [], {}, {"name": 5}]}}},
            {"dataset": {"namespace": DATABASE, "name": "a"}},
            {"dataset": [None, {"name": None}]},
        ],
    )
    def test_a_malformed_facet_derives_nothing_and_affects_nothing_else(self, facet):
        facts = self.folded(facet, schema=schema("x"))
        assert derivations(facts) == set()
        assert edges(facts) == {EdgeSeen(EdgeKind.WRITES, LOAD, table("out"))}

    @pytest.mark.parametrize(
        "odd",
        [
            {"inputFields": 5},
            {"inputFields": [source("a", "p") | {"name": 5}]},
            "a.p",
            None,
        ],
    )
    def test_one_malformed_entry_does_not_affect_the_others(self, odd):
        facet = {"fields": {"odd": odd, "x": {"inputFields": [None, source("a", "p")]}}}
        assert derivations(self.folded(facet)) == {derives("out.x", "a.p")}

    @pytest.mark.parametrize(
        "odd", ["IDENTITY", {"type": "DIRECT"}, [None], [5], [{"type": None}], [{"type": 5}]]
    )
    def test_malformed_transformations_leave_a_direct_edge(self, odd):
        facet = {"fields": {"x": {"inputFields": [source("a", "p") | {"transformations": odd}]}}}
        assert derivations(self.folded(facet)) == {derives("out.x", "a.p")}


class TestLineageFacetOfAJob:
    """`lineage` 1-0-0: exactly what feeds what, instead of all inputs feeding all outputs."""

    def folded(self, *entries: Json, **more) -> Facts:
        return folded(run_event(job_facets={"lineage": {"entries": list(entries)}}, **more))

    def target(self, name: str, **more) -> Json:
        return {"namespace": DATABASE, "name": name, "type": "DATASET", **more}

    def origin(self, name: str, field: str | None = None, *how: Json) -> Json:
        return source(name, field, *how, type="DATASET")

    def test_it_joins_just_the_datasets_it_names(self):
        facts = self.folded(
            self.target("x", inputs=[self.origin("a")]), self.target("y", inputs=[self.origin("b")])
        )
        assert edges(facts, EdgeKind.DERIVES) == {
            EdgeSeen(EdgeKind.DERIVES, table("a"), table("x"), LOAD),
            EdgeSeen(EdgeKind.DERIVES, table("b"), table("y"), LOAD),
        }
        assert edges(facts, EdgeKind.EXPLICIT) == {
            EdgeSeen(EdgeKind.EXPLICIT, LOAD, table("x")),
            EdgeSeen(EdgeKind.EXPLICIT, LOAD, table("y")),
        }
        assert len(edges(facts, EdgeKind.READS)) == len(edges(facts, EdgeKind.WRITES)) == 2

    def test_field_level_and_dataset_wide(self):
        sort = {"type": "INDIRECT", "subtype": "SORT"}
        facts = self.folded(
            self.target(
                "x",
                inputs=[self.origin("a", "k", sort), self.origin("b")],
                fields={"p": {"inputs": [self.origin("a", "q")]}},
            )
        )
        assert derivations(facts) == {
            derives("x.*", "a.k", direct=False, subtype="SORT"),
            derives("x.p", "a.q"),
        }
        assert {e.source for e in edges(facts, EdgeKind.DERIVES)} == {table("a"), table("b")}

    def test_an_empty_list_of_inputs_means_no_inputs(self):
        facts = self.folded(self.target("x", inputs=[]))
        assert edges(facts) == {
            EdgeSeen(EdgeKind.WRITES, LOAD, table("x")),
            EdgeSeen(EdgeKind.EXPLICIT, LOAD, table("x")),
        }

    def test_a_missing_list_of_inputs_states_nothing(self):
        assert edges(self.folded(self.target("x"), self.target("y", fields={}))) == {
            EdgeSeen(EdgeKind.WRITES, LOAD, table("x")),
            EdgeSeen(EdgeKind.WRITES, LOAD, table("y")),
        }

    def test_it_supersedes_column_lineage_of_the_datasets_it_describes(self):
        stated = column_lineage({"p": [source("wrong", "w")]})
        facts = self.folded(
            self.target("x", fields={"p": {"inputs": [self.origin("a", "q")]}}),
            outputs=[dataset("x", {"columnLineage": stated})],
        )
        assert derivations(facts) == {derives("x.p", "a.q")}
        assert table("wrong") not in nodes(facts)

    def test_column_lineage_of_other_datasets_stays(self):
        stated = column_lineage({"p": [source("a", "q")]})
        facts = self.folded(
            self.target("x", inputs=[]), outputs=[dataset("y", {"columnLineage": stated})]
        )
        assert derivations(facts) == {derives("y.p", "a.q")}

    def test_a_job_entry_names_what_a_job_reads_its_own_by_default(self):
        other = {"namespace": JOBS, "name": "other", "type": "JOB", "inputs": [self.origin("b")]}
        facts = self.folded({"type": "JOB", "inputs": [self.origin("a")]}, other)
        assert edges(facts) == {
            EdgeSeen(EdgeKind.READS, table("a"), LOAD),
            EdgeSeen(EdgeKind.READS, table("b"), JobId(JOBS, "other")),
        }
        assert claims(facts) == set()

    def test_a_job_that_feeds_a_dataset_writes_it(self):
        other = {"type": "JOB", "namespace": JOBS, "name": "other"}
        facts = self.folded(self.target("x", inputs=[other, {"type": "JOB"}]))
        assert edges(facts, EdgeKind.WRITES) == {
            EdgeSeen(EdgeKind.WRITES, LOAD, table("x")),
            EdgeSeen(EdgeKind.WRITES, JobId(JOBS, "other"), table("x")),
        }

    def test_a_job_entry_with_a_dataset_name_states_nothing_about_the_dataset(self):
        job_entry = {
            **self.target("x", fields={"p": {"inputs": [self.origin("a", "q")]}}),
            "type": "JOB",
        }
        facts = self.folded(job_entry, self.target("x", inputs=[]))
        assert derivations(facts) == set()

    def test_one_target_in_two_entries_has_the_lineage_of_both(self):
        facts = self.folded(
            self.target("x", fields={"p": {"inputs": [self.origin("a", "q")]}}),
            self.target("x", fields={"r": {"inputs": [self.origin("b", "s")]}}),
        )
        assert derivations(facts) == {derives("x.p", "a.q"), derives("x.r", "b.s")}

    @pytest.mark.parametrize(
        "entries",
        [None, {}, "x", [None], [5], [{}], [{"type": None}], [{"name": 5, "inputs": []}]],
    )
    def test_a_malformed_facet_joins_nothing_and_affects_nothing_else(self, entries):
        facts = folded(
            run_event(job_facets={"lineage": {"entries": entries}}, inputs=[dataset("a")])
        )
        assert edges(facts) == {EdgeSeen(EdgeKind.READS, table("a"), LOAD)}

    def test_one_malformed_entry_does_not_affect_the_others(self):
        facts = self.folded(
            self.target("x", inputs={"name": "a"}, fields=[1]),
            self.target("y", inputs=[None, self.origin("a")], fields={"p": {"inputs": "q"}}),
        )
        assert edges(facts, EdgeKind.DERIVES) == {
            EdgeSeen(EdgeKind.DERIVES, table("a"), table("y"), LOAD)
        }


class TestLineageFacetOfADataset:
    def test_on_an_output_it_describes_the_job(self):
        facet = {"inputs": [source("a", type="DATASET")]}
        facts = folded(run_event(outputs=[dataset("x", {"lineage": facet})]))
        assert EdgeSeen(EdgeKind.DERIVES, table("a"), table("x"), LOAD) in edges(facts)
        assert EdgeSeen(EdgeKind.EXPLICIT, LOAD, table("x")) in edges(facts)

    def test_without_a_job_it_describes_the_dataset(self):
        facet = {"fields": {"p": {"inputs": [source("a", "q", type="DATASET")]}}}
        facts = folded(dataset_event("x", {"lineage": facet}))
        assert edges(facts) == {EdgeSeen(EdgeKind.DERIVES, table("a"), table("x"))}
        assert derivations(facts) == {derives("x.p", "a.q")}

    def test_it_supersedes_column_lineage_beside_it(self):
        facts = folded(
            run_event(
                outputs=[
                    dataset(
                        "x",
                        {
                            "columnLineage": column_lineage({"p": [source("wrong", "w")]}),
                            "lineage": {"fields": {"p": {"inputs": [source("a", "q")]}}},
                        },
                    )
                ]
            )
        )
        assert derivations(facts) == {derives("x.p", "a.q")}
        assert table("wrong") not in nodes(facts)

    def test_an_empty_list_of_inputs_means_no_inputs(self):
        facts = folded(run_event(outputs=[dataset("x", {"lineage": {"inputs": []}})]))
        assert EdgeSeen(EdgeKind.EXPLICIT, LOAD, table("x")) in edges(facts)
        assert edges(facts, EdgeKind.DERIVES) == set()


class TestIdentity:
    def test_symlinks_join_names(self):
        facet = {
            "identifiers": [
                {"namespace": "hive://m:9083", "name": "db.orders", "type": "TABLE"},
                {"namespace": "s3://lake", "name": "orders", "type": "LOCATION"},
            ]
        }
        facts = folded(run_event(inputs=[dataset("orders", {"symlinks": facet})]))
        aliases = {edge.target for edge in edges(facts, EdgeKind.ALIAS)}
        assert aliases == {
            table("orders"),  # itself: it dates the facet
            DatasetId("hive://m:9083", "db.orders"),
            DatasetId("s3://lake", "orders"),
        }
        assert aliases <= nodes(facts)

    @pytest.mark.parametrize(
        "identifiers", [None, {}, "x", [None], [{}], [{"namespace": "n"}], [{"name": ""}]]
    )
    def test_symlinks_that_name_nothing(self, identifiers):
        facet = {"identifiers": identifiers}
        facts = folded(run_event(inputs=[dataset("a", {"symlinks": facet})]))
        assert edges(facts, EdgeKind.ALIAS) == {EdgeSeen(EdgeKind.ALIAS, table("a"), table("a"))}

    def test_a_rename(self):
        facet = {
            "lifecycleStateChange": "RENAME",
            "previousIdentifier": {"namespace": DATABASE, "name": "old"},
        }
        facts = folded(run_event(outputs=[dataset("new", {"lifecycleStateChange": facet})]))
        assert edges(facts, EdgeKind.RENAMED) == {
            EdgeSeen(EdgeKind.RENAMED, table("old"), table("new"))
        }

    @pytest.mark.parametrize(
        "facet",
        [
            {"lifecycleStateChange": "ALTER", "previousIdentifier": {"name": "old"}},
            {"lifecycleStateChange": "RENAME"},
            {"lifecycleStateChange": "RENAME", "previousIdentifier": None},
            {"lifecycleStateChange": "RENAME", "previousIdentifier": ["old"]},
            {"lifecycleStateChange": "RENAME", "previousIdentifier": {"name": ""}},
            {"lifecycleStateChange": None, "previousIdentifier": {"name": "old"}},
            {"lifecycleStateChange": 5},
            "RENAME",
        ],
    )
    def test_other_changes_rename_nothing(self, facet):
        facts = folded(run_event(outputs=[dataset("new", {"lifecycleStateChange": facet})]))
        assert edges(facts, EdgeKind.RENAMED) == set()


class TestJobOrder:
    def test_a_parent(self):
        facet = {
            "run": {"runId": "p"},
            "job": {"namespace": JOBS, "name": "dag"},
            "root": {"run": {"runId": "r"}, "job": {"namespace": JOBS, "name": "root"}},
        }
        facts = folded(run_event(run_facets={"parent": facet}))
        assert edges(facts) == {
            EdgeSeen(EdgeKind.PARENT, JobId(JOBS, "dag"), LOAD),
            EdgeSeen(EdgeKind.PARENT, JobId(JOBS, "root"), JobId(JOBS, "dag")),
        }
        assert JobId(JOBS, "dag") in nodes(facts)

    def test_job_dependencies(self):
        facet = {
            "upstream": [{"job": {"namespace": JOBS, "name": "before"}, "run": {"runId": "1"}}],
            "downstream": [{"job": {"namespace": JOBS, "name": "after"}}],
            "trigger_rule": "ALL_SUCCESS",
        }
        facts = folded(run_event(run_facets={"jobDependencies": facet}))
        assert edges(facts) == {
            EdgeSeen(EdgeKind.PRECEDES, JobId(JOBS, "before"), LOAD),
            EdgeSeen(EdgeKind.PRECEDES, LOAD, JobId(JOBS, "after")),
        }

    @pytest.mark.parametrize("odd", [None, [], "dag", {}, {"name": ""}, {"name": 5}])
    def test_malformed_references_order_nothing(self, odd):
        facets = {
            "parent": {"job": odd},
            "jobDependencies": {"upstream": [None, {"job": odd}], "downstream": {"job": odd}},
        }
        assert edges(folded(run_event(run_facets=facets))) == set()


class TestFacets:
    BODY = b'{ "_producer" :"x",\t"a":[1.50, 1e3 ,"\\u00e9\\/"], "b":{}}'

    @pytest.mark.parametrize(
        "name",
        [
            "schema",
            "columnLineage",
            "lineage",
            "symlinks",
            "version",
            "lifecycleStateChange",
            "ownership",
            "tags",
            "documentation",
            "dataSource",
            "storage",
            "catalog",
            "dataQualityMetrics",
            "dataQualityAssertions",
            "inputStatistics",
            "outputStatistics",
            "parent",
            "nominalTime",
            "errorMessage",
            "sql",
            "sourceCode",
            "sourceCodeLocation",
            "jobType",
            "processing_engine",
            "jobDependencies",
            "acme_retention",
        ],
    )
    def test_every_facet_known_or_not_is_kept_byte_for_byte_wherever_it_stands(self, name):
        facets = {name: "BODY"}
        event = run_event(
            job_facets=facets,
            run_facets=facets,
            inputs=[dataset("a", facets, inputFacets=facets)],
            outputs=[dataset("b", facets, outputFacets=facets)],
        )
        facts = fold(parse_event(encode(event).replace(b'"BODY"', self.BODY)))
        seen = [s for s in facts.sightings if isinstance(s, FacetSeen)]
        assert len(seen) == 6
        assert {(s.name, facts.bodies[s.digest]) for s in seen} == {(name, self.BODY)}

    def test_a_facet_is_attached_to_what_carried_it(self):
        run = RunId(LOAD, "run-1")
        facts = folded(
            run_event(
                job_facets={"sql": {"query": "select 1"}},
                run_facets={"errorMessage": {"message": "boom"}},
                inputs=[dataset("a", {"schema": {}}, inputFacets={"dataQualityMetrics": {}})],
                outputs=[dataset("b", outputFacets={"outputStatistics": {"rowCount": 5}})],
            )
        )
        seen = {s for s in facts.sightings if isinstance(s, FacetSeen)}
        assert {(s.role, s.node, s.run, s.name) for s in seen} == {
            (FacetRole.NODE, LOAD, None, "sql"),
            (FacetRole.RUN, LOAD, run, "errorMessage"),
            (FacetRole.NODE, table("a"), None, "schema"),
            (FacetRole.INPUT, table("a"), run, "dataQualityMetrics"),
            (FacetRole.OUTPUT, table("b"), run, "outputStatistics"),
        }

    def test_a_deleted_facet_is_one_more_version_of_it(self):
        facts = folded(
            dataset_event("a", {"ownership": {"owners": []}}, at="2026-01-01T00:00:00Z"),
            dataset_event("a", {"ownership": {"_deleted": True}}, at="2026-01-02T00:00:00Z"),
        )
        seen = [s for s in facts.sightings if isinstance(s, FacetSeen)]
        assert len(seen) == 2
        assert {s.name for s in seen} == {"ownership"}

    @pytest.mark.parametrize("name", ["columnLineage", "lineage", "symlinks"])
    def test_a_deleted_lineage_facet_states_no_lineage(self, name):
        facts = folded(run_event(outputs=[dataset("x", {name: {"_deleted": True}})]))
        assert derivations(facts) == set()
        assert edges(facts, EdgeKind.DERIVES, EdgeKind.EXPLICIT) == set()


class TestPurity:
    def test_folding_twice_gives_the_same_facts(self):
        event = parsed(run_event(inputs=[dataset("a", {"schema": schema("x")})]))
        assert fold(event) == fold(event)

    def test_folding_does_not_depend_on_what_was_folded_before(self):
        facet = column_lineage({"x": [source("a", "p")]})
        event = parsed(run_event(outputs=[dataset("out", {"columnLineage": facet})]))
        before = fold(event)
        # The same facet, now on another dataset and without the job.
        fold(parsed(dataset_event("other", {"columnLineage": facet})))
        assert fold(event) == before

    def test_the_event_is_left_as_it_was(self):
        event = parsed(run_event(outputs=[dataset("a", {"schema": schema("x")})]))
        fold(event)
        assert event == parse_event(event.raw)
