"""What was promised: drafts, rules, freezing, plans, tags, witnesses."""
