"""In which order requests are worth sending: those that begin alike one after the other."""

from __future__ import annotations

import json

from synth.requests import Request, digest


def prefix_key(request: Request) -> tuple[str, str, str, int]:
    """What to sort waiting requests by: `sorted(waiting, key=lambda one: prefix_key(one.request))`.

    A server keeps the attention states of what it read and takes them from there when another prompt begins alike, as
    long as nothing else has needed their place. In the order of their text, prompts with a common beginning (system
    prompt, examples, a document) stand beside each other however long it is, and the rollouts of one prompt together.
    Messages are compared in their order, tools before them, as templates put them there.
    """
    parts = [json.dumps(request.tools, sort_keys=True, default=dict)] if request.tools else []
    for message in request.messages:
        told = message.get("content")
        text = told if isinstance(told, str) else json.dumps(told, sort_keys=True, default=str)
        parts += (str(message.get("role")), text)
    if request.prompt is not None:
        parts.append(request.prompt)
    # No text holds a NUL, so that a message which ends sorts before one that goes on.
    return request.teacher, "\0".join(parts), digest(request.content()), request.rollout
