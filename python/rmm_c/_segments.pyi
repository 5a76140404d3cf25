# SPDX-License-Identifier: Apache-2.0
"""The types of segments/segments.c; tests/test_documents.py compares both."""
import os
from typing import Any, Dict, Union

def read_node(path: Union[str, "os.PathLike[str]"] = ..., /) -> Dict[str, Any]: ...
