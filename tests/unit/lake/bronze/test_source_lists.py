"""The states of ingested files are found without reading a list of every batch."""

from __future__ import annotations

import msgspec

from downriver.lake.bronze.batches import join_ranges, time_ranges
from downriver.lake.bronze.event_files import FileState
from downriver.lake.bronze.source_lists import add_states, find_states
from downriver.lake.storage.files import Folder
from downriver.lake.storage.tables import BronzeBatch, LakeVersion, TimeRange

HOUR = 3_600_000_000


def test_the_last_state_of_a_file_is_found_in_a_few_lists(tmp_path):
    folder, version = Folder(str(tmp_path)), LakeVersion(sources=())
    for number in range(200):
        states = [FileState(f"{number}.jsonl", 1, 1), FileState("grown.jsonl", number, number)]
        lists = add_states(folder, version, states)
        version = msgspec.structs.replace(version, version=number + 1, sources=lists)
    assert version.sources is not None
    assert len(version.sources) < 10
    found = find_states(folder, version, ["grown.jsonl", "17.jsonl", "other.jsonl"])
    assert found == {
        "grown.jsonl": FileState("grown.jsonl", 199, 199),
        "17.jsonl": FileState("17.jsonl", 1, 1),
    }
    for paths in (["grown.jsonl"], []):  # the older lists need not be read
        assert find_states(folder, version, paths).keys() == set(paths)
    assert add_states(folder, version, []) == version.sources


def test_lists_in_batches_of_older_releases_are_read_and_replaced(tmp_path):
    folder = Folder(str(tmp_path))
    old = FileState("old.jsonl", 1, 1)
    folder.write("bronze/1/sources.jsonl", msgspec.json.encode(old))
    version = LakeVersion(batches=(BronzeBatch(1, "bronze/1", 1, 0, 0),))
    assert find_states(folder, version, ["old.jsonl"]) == {"old.jsonl": old}
    new = FileState("new.jsonl", 2, 2)
    [stored] = add_states(folder, version, [new])
    folder.remove("bronze/1")
    version = msgspec.structs.replace(version, sources=(stored,))
    assert find_states(folder, version, ["old.jsonl", "new.jsonl"]) == {
        "old.jsonl": old,
        "new.jsonl": new,
    }


def test_a_late_event_is_a_time_range_of_its_own():
    today = [TimeRange(at * HOUR, at * HOUR + 5) for at in range(1000, 1010)]
    late = TimeRange(3 * HOUR, 3 * HOUR)
    assert join_ranges([*today, late]) == [late, TimeRange(1000 * HOUR, 1009 * HOUR + 5)]
    many = [TimeRange(at * at * HOUR, at * at * HOUR + 1) for at in range(100)]
    joined = join_ranges(many)
    assert len(joined) == 16
    assert all(any(r.first_at <= at <= r.last_at for r in joined) for at, _ in many)
    assert join_ranges([]) == []
    batch = BronzeBatch(
        1, "b", 2, 0, 0, first_at=10, last_at=90, ranges=(TimeRange(10, 20), TimeRange(80, 90))
    )
    assert [batch.may_hold(at, at) for at in (10, 50, 85)] == [True, False, True]


def test_a_merged_batch_has_the_times_of_all_its_events():
    day = BronzeBatch(1, "a", 2, 0, 0, first_at=10, last_at=20)
    only_unreadable = BronzeBatch(2, "b", 0, 3, 0)
    of_old_release = BronzeBatch(3, "c", 5, 0, 0)
    assert time_ranges([day, only_unreadable], None) == [TimeRange(10, 20)]
    assert time_ranges([day, only_unreadable], 15) == [TimeRange(15, 20)]
    assert time_ranges([day], 21) == []
    assert time_ranges([day, of_old_release], None) == [], "unknown: it may have any time"
