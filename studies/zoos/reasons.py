"""What an error says, short enough for a table."""

import re

_PLACES = re.compile(r"""[^\s'"]*/(\.mim/configs|site-packages)/""")
# Advice that follows on what is wrong.
_TAIL = re.compile(r"""(?<=[\w'")])\. |, the current| Please """)


def reason_of(error: Exception) -> str:
    """Return the type and the first sentence of an error, without folders of this machine."""
    text = ' '.join(_PLACES.sub('', str(error)).split())
    return f'{type(error).__name__}: {_TAIL.split(text)[0].rstrip(".,: ")[:160]}'
