import sys

from harness.simulator.commands import main

sys.exit(main())
