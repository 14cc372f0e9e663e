"""One result, many documents: HTML, JSON, Markdown, JUnit."""
