"""Data contracts: their files, and their evaluation against observations."""

from downriver.govern.contracts.contract_file import StatedContract, parse_contract, read_contracts
from downriver.govern.contracts.evaluation import check_contract

__all__ = ["StatedContract", "check_contract", "parse_contract", "read_contracts"]
