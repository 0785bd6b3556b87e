"""tensorflow.python.autograph.core.config: the rules by which impl.conversion decides. The first that matches holds."""

from runnel.autograph import conversion
from runnel.autograph.core.config_lib import Action, Convert, DoNotConvert  # noqa: F401

CONVERSION_RULES = tuple(DoNotConvert(name) for name in sorted(conversion.LIBRARIES | conversion.STANDARD))
