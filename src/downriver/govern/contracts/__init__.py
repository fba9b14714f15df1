"""Data contracts: files that state them, and the observations that they are checked against."""

from downriver.govern.contracts.contract_file import StatedContract, parse_contract, read_contracts
from downriver.govern.contracts.evaluation import check_contract

__all__ = ["StatedContract", "check_contract", "parse_contract", "read_contracts"]
