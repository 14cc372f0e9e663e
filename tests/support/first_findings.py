"""What the first finding must be, of recorded folders and of operators' situations, whose truths are known."""

FOLDERS_FIRST = [
    ("a3-workers1", "controller-workers", "short of workers"),
    ("a4-parallelism4", "workflows-postponed", "4 were active at once"),
    ("a5-quota6", "unexplained-wait", "at most 6 were active at once"),
    ("a6-nodes", "nodes-exhausted", "waiting for a node"),
    ("a8-ctlkill", "controller-down", "for 25 s, from 1.71 s into the test"),
    ("k6-burst60", "agent-lag", "14 s late"),
    ("k-noagent", "agent-lag", "10 runs still open"),
    ("k-fail", "failures", "FAIL_ME"),
    ("k-oom", "oom", "in prepare"),
    ("k-evict", "node-pressure", "memory"),
    ("webhook-slow", "webhook-slow", "its creation takes 4.82 s"),
]
SITUATIONS_FIRST = [
    ("attach_timeout", "volume-multi-attach", "12 runs waited 4 min 43 s each", "ReadWriteMany", "Multi-Attach error"),
    ("create_container_config", "secret-missing", "db-credentials does not exist: 24 of 24 runs are blocked",
     "secret", "not found"),
    ("istio_sidecar", "sidecar-outlives-main", "The sidecar istio-proxy keeps the pods running", "inject", "istio"),
    ("node_notready", "node-not-ready", "(w-1): 6 of 24 runs", "kubelet", "on 1 node: w-1"),
    ("preempted", "preempted", "12 of 24 runs failed", "priorit", "Preempted by pod"),
    ("pull_429", "registry-rate-limit", "8 runs waited 4 min 1 s each", "mirror", "429 Too Many Requests"),
    ("pvc_unbound", "claim-unbound", "12 of 24 runs are blocked", "storage class", "unbound immediate"),
    ("s3_slowdown", "store-rate-limit", "12 of 24 runs failed", "fewer steps upload", "reduce your request rate"),
    ("untolerated_taint", "untolerated-taint", "taint sku: training: 24 of 24 runs are blocked",
     "pipeswarm prepare --toleration", "untolerated taint {sku: training}"),
    ("webhook_timeout", "webhook-timeout", "validate.kyverno.svc-fail", "failurePolicy", "failed calling webhook"),
]  # fmt: skip
