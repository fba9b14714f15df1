"""Inventories: the tables that exist, as a system or a file lists them."""

from downriver.capture.inventory.sources import TableInventory, read_inventory

__all__ = ["TableInventory", "read_inventory"]
