"""The shapes by their names: of providers, then of clients. Part of the runtime ring."""

from ecm_rules.lifecycle.anthropic import ANTHROPIC
from ecm_rules.lifecycle.gemini import GEMINI
from ecm_rules.lifecycle.gemini_text import GEMINI_TEXT
from ecm_rules.lifecycle.openai import OPENAI_CHAT, OPENAI_RESPONSES
from ecm_rules.lifecycle.opencode import OPENCODE
from ecm_rules.lifecycle.pi import PI
from ecm_rules.lifecycle.shapes import NEUTRAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ecm_rules.lifecycle.shapes import Shape

SHAPES: "dict[str, Shape]" = {
    shape.name: shape
    for shape in (NEUTRAL, ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES, GEMINI, OPENCODE, PI, GEMINI_TEXT)
}
