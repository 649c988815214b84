from rxdelta.core import *
from rxdelta.core import events
