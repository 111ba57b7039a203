"""Write a bill of materials for each image, in CycloneDX's JSON form.

In: the built images; each is asked for its Debian packages and its Python distributions.
Out: DIRECTORY/IMAGE.cdx.json, valid against the CycloneDX 1.6 schema.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from deploy.images.build import EPOCH, ROLES, image_names
from deploy.images.engine import Engine, EngineError, able_to_run, find_engine

_DISTRIBUTIONS = """
import email, importlib.metadata, json, pathlib
notes = [email.message_from_string(it.read_text()) for it in pathlib.Path("/var/lib/dpkg/status.d").iterdir()]
print(json.dumps({
    "deb": sorted((it["Package"], it["Version"], it["Architecture"]) for it in notes),
    "pypi": sorted((it.metadata["Name"], it.version) for it in importlib.metadata.distributions()),
}))
"""


def components(engine: Engine, image: str) -> Iterator[Component]:
    """Yield what an image holds; raises EngineError."""
    python = ("--rm", "--network=none", "--entrypoint=/opt/kube-dns/bin/python")
    held = json.loads(engine.run(*python, image, "-c", _DISTRIBUTIONS))
    for name, version, architecture in held["deb"]:
        yield _component(PackageURL("deb", "debian", name, version, {"arch": architecture}))
    for name, version in held["pypi"]:
        yield _component(PackageURL("pypi", None, name.lower().replace("_", "-"), version))


def _component(url: PackageURL) -> Component:
    return Component(
        name=url.name, version=url.version, purl=url, bom_ref=url.to_string(), type=ComponentType.LIBRARY
    )


def bill(engine: Engine, image: str) -> str:
    """Return the bill of an image as JSON; raises EngineError."""
    name, _, tag = image.rpartition(":")
    subject = Component(name=name, version=tag, type=ComponentType.CONTAINER, bom_ref=image)
    bom = Bom(components=components(engine, image))
    bom.metadata.component = subject
    # The same bill for the same image: no time of writing, and a serial number that follows from what is in it.
    bom.metadata.timestamp = datetime.fromtimestamp(EPOCH, UTC)
    held = " ".join(sorted(part.bom_ref.value or "" for part in bom.components))
    bom.serial_number = uuid5(NAMESPACE_URL, f"{image} {held}")
    bom.register_dependency(subject, bom.components)
    text: str = JsonV1Dot6(bom).output_as_string(indent=2)
    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise EngineError(f"the bill of {image} is not valid: {error}")
    return text


def main() -> int:
    """Write the bills; 1 and a message when an image is missing."""
    parser = argparse.ArgumentParser(description="Write a bill of materials for each image.")
    parser.add_argument("--engine", default="", help="docker or podman (default: the first there is)")
    parser.add_argument(
        "--prefix", default="localhost/kube-dns/", help="prefix of the names (default %(default)s)"
    )
    parser.add_argument("--output", type=Path, required=True, help="directory to write to")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    try:
        engine = find_engine(options.engine)
        for role, image in image_names(options.prefix).items():
            if not engine.has_image(image):
                raise EngineError(f"there is no image {image}: run `make images` first")
            engine = able_to_run(engine, image, "/opt/kube-dns/bin/python", "-V")
            path = options.output / f"{ROLES[role]}.cdx.json"
            path.write_text(bill(engine, image))
            sys.stdout.write(f"{path}\n")
    except EngineError as error:
        sys.stderr.write(f"sbom: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
