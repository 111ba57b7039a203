"""Strategic merge patches: merge patches that know which lists are sets of named items.

In: an object, a patch, the schema that names the merge keys.  Out: the patched object; the
arguments are not changed.

Differs: the ports 53/TCP and 53/UDP of a Service are told apart although `port` alone is the
merge key; a real server confuses them.

Source: apimachinery pkg/util/strategicpatch; the directives `$patch`, `$retainKeys`,
`$setElementOrder/...` and `$deleteFromPrimitiveList/...`.
"""

from typing import Any, Final

from kubedns.local.api.schema import ANYTHING, Json, ListOf, Node, Struct

_ORDER: Final = "$setElementOrder/"
_DELETE: Final = "$deleteFromPrimitiveList/"


class PatchError(ValueError):
    """A patch that can't be applied; the text says why."""


def strategic_merge(node: Node, original: Json, patch: Json) -> Json:
    """Return an object with a strategic merge patch applied; raises PatchError."""
    if not isinstance(patch, dict):
        raise PatchError("the patch is not a JSON object")
    content = {name: value for name, value in patch.items() if not name.startswith("$")}
    match patch.get("$patch", "merge"):
        case "delete":
            return {}
        case "replace":
            return content
        case "merge":
            return _merged_object(node, original, patch, content)
        case directive:
            raise PatchError(f"Unknown patch type: {directive}")


def _merged_object(node: Node, original: Json, patch: dict[str, Any], content: dict[str, Any]) -> Json:
    result = dict(original) if isinstance(original, dict) else {}
    if (kept := patch.get("$retainKeys")) is not None:
        result = {name: value for name, value in result.items() if name in kept}
    fields = node.fields if isinstance(node, Struct) else {}
    for name, gone in _directives(patch, _DELETE):
        result[name] = [item for item in result.get(name) or [] if item not in gone]
    for name, value in content.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged(fields.get(name, ANYTHING), result.get(name), value)
    for name, order in _directives(patch, _ORDER):
        child = fields.get(name, ANYTHING)
        if isinstance(child, ListOf) and isinstance(result.get(name), list):
            result[name] = _ordered(child, result[name], order)
    return result


def _directives(patch: dict[str, Any], prefix: str) -> list[tuple[str, list[Any]]]:
    found = [(name.removeprefix(prefix), value) for name, value in patch.items() if name.startswith(prefix)]
    for name, value in found:
        if not isinstance(value, list):
            raise PatchError(f"{prefix}{name} is not a list")
    return found


def _merged(node: Node, original: Json, patch: Json) -> Json:
    if isinstance(patch, dict):
        return strategic_merge(node, original, patch)
    if isinstance(patch, list) and isinstance(node, ListOf) and isinstance(original, list):
        if node.merge:
            return original + [item for item in patch if item not in original]
        if node.merge_key is not None:
            return _merged_list(node, node.merge_key, original, patch)
    if isinstance(patch, list):
        return [item for item in patch if not (isinstance(item, dict) and "$patch" in item)]
    return patch


def _merged_list(node: ListOf, key: str, original: list[Any], patch: list[Any]) -> list[Any]:
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if not (isinstance(item, dict) and "$patch" in item)]
    result = list(original)
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise PatchError(f"map: {item} does not contain declared merge key: {key}")
        matches = [index for index, known in enumerate(result) if _same_item(known, item, key)]
        if item.get("$patch") == "delete":
            result = [known for index, known in enumerate(result) if index not in matches]
        elif matches:
            result[matches[0]] = strategic_merge(node.item, result[matches[0]], item)
        else:
            result.append(strategic_merge(node.item, {}, item))
    return result


def _same_item(known: Json, item: dict[str, Any], key: str) -> bool:
    if not isinstance(known, dict) or known.get(key) != item[key]:
        return False
    return "protocol" not in item or known.get("protocol", item["protocol"]) == item["protocol"]


def _ordered(node: ListOf, items: list[Any], order: list[Any]) -> list[Any]:
    """Put the items that the patch orders first, in its order; the others keep theirs."""
    key = node.merge_key

    def rank(item: Any) -> int:
        for position, wanted in enumerate(order):
            if item == wanted or (
                key is not None
                and isinstance(wanted, dict)
                and key in wanted
                and _same_item(item, wanted, key)
            ):
                return position
        return len(order)

    return sorted(items, key=rank)
