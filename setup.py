"""Lists the packages of the three mapped folders; everything else is in pyproject.toml, which cannot say this."""

from setuptools import find_packages, setup

FOLDERS = {"kdsl": "kdsl", "kdsl.backends": "backends", "kdsl.kernels": "kernels"}

setup(
    packages=[
        name
        for package, folder in FOLDERS.items()
        for name in (package, *(f"{package}.{inner}" for inner in find_packages(folder)))
    ],
)
