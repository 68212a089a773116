"""Sentences of ``protocol.ports`` that a store over Active Directory cannot keep, and why.

``test_active_directory_store.py`` has the others, under the names that they have in
``tests/storage/test_contract.py``.
"""

from __future__ import annotations

_NO_SEQUENCE = "Active Directory numbers changes itself (uSNChanged) and keeps none of our numbers"
_NO_TOMBSTONES = "tombstones are Active Directory's own"
_NO_PARTITIONS = "partitions and their states belong to replication, which the server leaves alone"
_NO_QUOTAS = "Active Directory has quotas of its own"
_NO_DIGESTS = "digests are kept for replication only"
_NO_TRANSACTIONS = "LDAP has no transactions: every change is made at once, nothing is rolled back"
_NO_SNAPSHOTS = "LDAP has no snapshots; a view remembers single objects only"
_PLACES = "a queue stays below the machine that it was made on, and its path follows from its place"

DOES_NOT_APPLY: dict[str, str] = {
    "test_names_and_labels_of_any_length": "names have 124 characters at most, labels 124 too",
    "test_objects_ascend_by_the_bytes_of_their_identifiers": "the directory orders them; lookups "
    "sort what they found",
    "test_owner_follows_an_update": _PLACES,
    "test_objects_count_for_their_first_owner": _NO_QUOTAS,
    "test_a_creator_that_is_known_counts_instead_of_the_owner": _NO_QUOTAS,
    "test_changes_ascend_with_tombstones_among_them": _NO_SEQUENCE,
    "test_changes_follow_an_update": _NO_SEQUENCE,
    "test_tombstones": _NO_TOMBSTONES,
    "test_each_partition_has_its_own_tombstone_of_an_identifier": _NO_TOMBSTONES,
    "test_partitions_come_with_the_enterprise_first": _NO_PARTITIONS,
    "test_a_partition_takes_the_place_of_its_predecessor": _NO_PARTITIONS,
    "test_a_name_that_is_taken_cannot_be_updated_to": _PLACES,
    "test_an_exception_leaves_nothing": _NO_TRANSACTIONS,
    "test_nothing_is_visible_before_the_commit": _NO_TRANSACTIONS,
    "test_a_view_does_not_change_under_its_reader": _NO_SNAPSHOTS,
    "test_a_long_result_is_of_one_moment": _NO_SNAPSHOTS,
    "test_savepoints_nest": _NO_TRANSACTIONS,
    "test_writers_of_two_threads_take_turns": _NO_PARTITIONS,
    "test_writers_of_two_stores_on_one_database_take_turns": _NO_PARTITIONS,
    "test_values_of_every_type_come_back": "only the properties of the schema are kept; the "
    "mapping's tests read back every one of them",
    "test_objects_tombstones_and_partitions_come_back": _NO_PARTITIONS,
    "test_a_reader_may_finish_after_the_store_was_closed": "a view reads through the connection, "
    "which closing ends",
    "test_digest_of_no_partition": _NO_DIGESTS,
    "test_every_change_counts_in_the_digest": _NO_DIGESTS,
    "test_a_mark_and_a_tombstone_do_not": _NO_DIGESTS,
    "test_what_is_rolled_back_is_not_in_the_digest": _NO_DIGESTS,
    "test_a_partition_that_comes_after_its_objects": _NO_DIGESTS,
    "test_an_object_that_moves_to_another_partition": _NO_DIGESTS,
}
