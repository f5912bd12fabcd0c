"""A site of what is modelled and proved here, and the executable encoding in a browser (docs/site.md)."""
