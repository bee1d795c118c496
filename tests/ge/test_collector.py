"""The collector rests inside the block, and is afterwards as it was, whatever happened."""

import gc

import pytest

from ge.collector import collector_at_rest


@pytest.mark.parametrize("was_enabled", [True, False])
def test_it_is_left_as_it_was(was_enabled: bool) -> None:
    (gc.enable if was_enabled else gc.disable)()
    try:
        with collector_at_rest():
            assert not gc.isenabled()
            with collector_at_rest():
                assert not gc.isenabled()
            assert not gc.isenabled()
        assert gc.isenabled() is was_enabled
        with pytest.raises(ValueError, match="inside"), collector_at_rest():
            raise ValueError("inside")
        assert gc.isenabled() is was_enabled
    finally:
        gc.enable()
