"""What a command line that cannot be used is answered with."""

import pytest

from kubedns.shared.flags import UsageError, flag_bool, flag_text, parse_flags

FLAGS = (flag_text("domain", "", "x"), flag_bool("wildcards", True, "x"), flag_text("configDir", "", "x"))


@pytest.mark.parametrize(
    ("argv", "advice"),
    [
        (["--wildcards", "false"], "write --wildcards=false"),
        (["-wildcards", "True"], "write --wildcards=true"),
        (["--domian=x"], "unknown flag: --domian; did you mean --domain?"),
        (["--config-dir=x"], "did you mean --configDir?"),
        (["--DOMAIN=x"], "did you mean --domain?"),
    ],
)
def test_slip_is_answered_with_what_to_write(argv, advice):
    with pytest.raises(UsageError) as caught:
        parse_flags(FLAGS, argv)
    assert str(caught.value).endswith(advice)


@pytest.mark.parametrize(
    "argv", [["--zzz"], ["--domain=x", "false"], ["--wildcards=true", "false"], ["--wildcards", "word"]]
)
def test_nothing_is_guessed_where_nothing_is_near(argv):
    with pytest.raises(UsageError) as caught:
        parse_flags(FLAGS, argv)
    assert "did you mean" not in str(caught.value)
    assert "write" not in str(caught.value)
