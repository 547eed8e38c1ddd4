"""Formulas as MathML, which browsers show without scripts or fonts from elsewhere.

In Markdown, a block fenced as `math` is a formula on a line of its own, and $`…`$ is one within the text.
"""

import re

from latex2mathml.converter import convert

_BLOCK = re.compile(r"^```math\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"\$`([^`\n]+)`\$")


def with_math(text: str) -> str:
    """Return Markdown with its formulas as MathML."""
    text = _BLOCK.sub(lambda found: f'<div class="formula">{_mathml(found[1], "block")}</div>', text)
    # Markdown takes a line that begins with <math> for a block.
    return _INLINE.sub(lambda found: f"<span>{_mathml(found[1], 'inline')}</span>", text)


def _mathml(latex: str, display: str) -> str:
    return convert(" ".join(latex.split()), display=display)
