"""The kinds of messages between a master and its workers. Each names its ``test``.

From the master: CLOCK ``{sent}``, GO (`Assignment.pack`), MORE ``{dues, last}``, STOP ``{why, at_once}``, and KEPT
``{upto, over, unwanted}``: it has a worker's records up to this position, or does not know the test.
From a worker: CLOCK_IS ``{sent, here}``, and ROWS ``{at, lines, over, error}``: records from position `at` on; with
`over` there will be none after them.
"""

GO, MORE, STOP, CLOCK, KEPT = "pipeswarm-go", "pipeswarm-more", "pipeswarm-stop", "pipeswarm-clock", "pipeswarm-kept"
ROWS, CLOCK_IS = "pipeswarm-rows", "pipeswarm-clock-is"
