"""Files for other tools: Chrome traces, SARIF, metrics."""
