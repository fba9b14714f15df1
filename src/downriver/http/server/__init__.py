"""What happens around every request: connection limits, log, headers, revalidation."""
