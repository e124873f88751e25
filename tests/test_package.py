from importlib.metadata import version

import ornstein


def test_version_is_the_installed_one():
    assert ornstein.__version__ == version("ornstein")
