"""The documentation site: pages made from declarations, tutorials executed as notebooks."""
