"""Who may do what: the bearer token and the refusals that tests ask for.

In: a request's Authorization header, its verb and resource.  Out: the user, or an ApiError.

Source: recorded 401 and 403 responses.
"""

from dataclasses import dataclass, field
from pathlib import Path

from kubedns.local.api.errors import ApiError, details_of
from kubedns.local.api.kinds import RESOURCES, Resource

ANONYMOUS = "system:anonymous"
ACCOUNT = "system:serviceaccount:kube-system:kube-dns"
_VERBS = frozenset({"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "*"})
_RESOURCES = frozenset({"*", *(resource.plural for resource in RESOURCES)})


@dataclass(slots=True)
class Access:
    """The rules, which may change while the API runs.

    `token_file` holds the tokens that are good, one a line; it is read for every request, so
    that a rotation counts at once.  `anonymous` lets a request without any credential in as
    the user system:anonymous, who may do nothing.  `denied` are (verb, resource) pairs, `*`
    for any.
    """

    token_file: Path | None = None
    anonymous: bool = False
    denied: set[tuple[str, str]] = field(default_factory=set)

    def user(self, authorization: str | None) -> str:
        """Return who asks; raises the 401."""
        if self.token_file is None:
            return ANONYMOUS if authorization is None else ACCOUNT
        if authorization is None and self.anonymous:
            return ANONYMOUS
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or token.strip() not in self._tokens(self.token_file):
            raise ApiError(401, "Unauthorized", "Unauthorized")
        return ACCOUNT

    def check(self, user: str, verb: str, resource: Resource, namespace: str, name: str) -> None:
        """Raise the 403 when a user may not do something."""
        stranger = user == ANONYMOUS and self.token_file is not None
        if not stranger and not any(
            (one, other) in self.denied for one in (verb, "*") for other in (resource.plural, "*")
        ):
            return
        subject = f'{resource.qualified} "{name}"' if name else resource.qualified
        where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
        message = (
            f'{subject} is forbidden: User "{user}" cannot {verb} resource "{resource.plural}" '
            f'in API group "{resource.group}" {where}'
        )
        raise ApiError(403, "Forbidden", message, details_of(resource, name))

    @staticmethod
    def _tokens(path: Path) -> set[str]:
        try:
            lines = path.read_text(encoding="utf-8").split()
        except (OSError, UnicodeDecodeError) as error:
            raise ApiError(500, "InternalError", f"can't read the token file {path}: {error}") from error
        return set(lines)


def parse_denial(text: str) -> tuple[str, str]:
    """Return the pair of `VERB:RESOURCE`; raises ValueError with the reason."""
    verb, colon, resource = text.partition(":")
    if not colon or verb not in _VERBS or resource not in _RESOURCES:
        raise ValueError(
            f"{text!r} is not VERB:RESOURCE such as *:endpointslices; verbs: {', '.join(sorted(_VERBS))}; "
            f"resources: {', '.join(sorted(_RESOURCES))}"
        )
    return verb, resource
