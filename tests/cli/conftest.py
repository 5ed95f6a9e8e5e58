from tests.runtime.conftest import fake

__all__ = ["fake"]
