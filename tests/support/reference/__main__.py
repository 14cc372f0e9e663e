from tests.support import reference

reference.write()
