"""The policy and its rules, and the verdict that they give."""
