# SPDX-License-Identifier: Apache-2.0
"""The types of segments/segments.c; tests/test_documents.py compares both."""
import os
from typing import Any, Dict, List, Union

def own_folder() -> str: ...
def read_folder(path: Union[str, "os.PathLike[str]"], /) -> List[Dict[str, Any]]: ...
