"""The parts of the page as HTML and SVG."""
