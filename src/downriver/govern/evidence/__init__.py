"""Evidence packs: signed facts about a dataset, for readers without access to the store."""
