import pytest

from spacql.data import correlation


@pytest.fixture(scope="module")
def rough_correlation():
    """The excess correlation after a few steps: enough to be shown."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(correlation, "LEAST_STEPS", 5)
        patch.setattr(correlation, "EPOCHS", 0)
        yield
