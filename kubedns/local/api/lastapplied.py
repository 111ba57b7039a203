"""The annotation in which `kubectl apply` keeps what it applied last.

In: a manifest as a person wrote it.  Out: the same with the annotation, byte for byte as kubectl
makes it, so that applying the file again finds nothing to do.

Source: kubectl pkg/util/apply.go; Go's encoding/json, which sorts keys and escapes what HTML may
not hold.
"""

import json
from typing import Any, Final

from kubedns.local.api.kinds import Resource

ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
_LARGEST: Final = 256 * 1024
"""Octets that annotations may have in all; a manifest whose copy is larger goes without."""
_ESCAPES: Final = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})


def as_applied(resource: Resource, value: dict[str, Any]) -> dict[str, Any]:
    """Return the object as `kubectl apply` would have sent it.

    One that a server has numbered (uid, resourceVersion) was recorded rather than written: it is
    returned as it is, and so is one whose annotations are no mapping, which is refused later.
    """
    metadata: dict[str, Any] = value.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    if metadata.get("uid") or metadata.get("resourceVersion") or not isinstance(annotations, dict):
        return value
    own = {name: text for name, text in annotations.items() if name != ANNOTATION}
    applied = {**metadata, "annotations": own}
    if resource.namespaced and not metadata.get("namespace"):
        applied["namespace"] = "default"
    text = json.dumps(
        {**value, "metadata": applied}, ensure_ascii=False, sort_keys=True, separators=(",", ":")
    )
    text = text.translate(_ESCAPES) + "\n"
    if len(text.encode(errors="replace")) > _LARGEST:
        return value
    return {**value, "metadata": {**applied, "annotations": {**own, ANNOTATION: text}}}
