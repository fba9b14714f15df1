"""What lineage is made of. Depends on nothing else in Downriver."""
