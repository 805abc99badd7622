"""Markdown, HTML and figures from records."""
