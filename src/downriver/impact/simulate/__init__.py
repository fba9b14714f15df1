"""What a change does to one process: its SQL under changed schemas, else its edges."""
