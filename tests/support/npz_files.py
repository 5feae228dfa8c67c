"""Archives of arrays as strangers may make them."""

import io
import zipfile

import numpy as np


def packed(path, **members):
    """An .npz whose members have this content."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)


def header(shape, dtype="<f4"):
    """What an array of this shape begins with."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": dtype, "fortran_order": False, "shape": shape})
    return buffer.getvalue()
