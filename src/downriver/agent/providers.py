"""Which model answers, and whether there is a key for it."""

from __future__ import annotations

import os

OFFLINE = "offline"
DEFAULT_MODEL = "gpt-4o-mini"
_KEYS = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "cohere": ("CO_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
}
_FAMILIES = {"claude": "anthropic", "gemini": "google", "mistral": "mistral", "command": "cohere"}
OWN_ENDPOINT = "OPENAI_BASE_URL"


def choose_model(wanted: str | None) -> tuple[str, str]:
    """Return the model that will answer, as `provider:name` or `offline`, and what to tell of it.

    Without a key there is no model: then the answers come from fixed rules.
    """
    if wanted == OFFLINE:
        return OFFLINE, ""
    provider, name = split_model(wanted or DEFAULT_MODEL)
    if has_key(provider):
        return f"{provider}:{name}", ""
    if wanted is None:
        return OFFLINE, ""
    keys = " or ".join(_KEYS.get(provider, (f"{provider.upper()}_API_KEY",)))
    return OFFLINE, f"no API key for {wanted} ({keys} is not set); answering offline"


def split_model(model: str) -> tuple[str, str]:
    """Return provider and name: `anthropic:claude-…`, or by the name alone; else OpenAI's API."""
    provider, colon, name = model.partition(":")
    if colon and provider in _KEYS:
        return provider, name
    if OWN_ENDPOINT in os.environ:  # one's own server may call its models as it likes
        return "openai", model
    family = next((p for word, p in _FAMILIES.items() if model.startswith(word)), "openai")
    return family, model


def has_key(provider: str) -> bool:
    """Tell whether a provider can be asked. One's own endpoint may need no key."""
    if provider == "openai" and os.environ.get(OWN_ENDPOINT):
        return True
    keys = _KEYS.get(provider, (f"{provider.upper()}_API_KEY",))
    return any(os.environ.get(key) for key in keys)
