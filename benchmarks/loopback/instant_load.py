from harness.drive.user import PipelineUser


class InstantRuns(PipelineUser):
    platform = "instant"
