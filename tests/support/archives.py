"""Archives of ours with something in them exchanged, and checksums that fit all the same."""

import hashlib
import json
import zipfile


def entries_of(path):
    """The files inside an archive, by name."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, entries):
    """An archive of these files."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, entry in entries.items():
            archive.writestr(name, entry)


def with_manifest(entries, text):
    """The files with another manifest, and the checksum made to fit."""
    return entries | {"manifest.json": text, "manifest.sha256": hashlib.sha256(text).hexdigest().encode()}


def with_array(entries, name, content):
    """The files with another array, its checksum in the manifest made to fit, and the manifest's too."""
    manifest = json.loads(entries["manifest.json"])
    number = int(name.removeprefix("arrays/").removesuffix(".npy"))
    manifest["arrays"][number] = hashlib.sha256(content).hexdigest()
    return with_manifest(entries | {name: content}, json.dumps(manifest).encode())
