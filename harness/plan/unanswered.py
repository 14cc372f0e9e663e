"""What to do when a platform does not answer, by what the client library said; load and observer say the same."""

from harness.plan.http_proxy import Proxy


def hint(said: str, host: str, proxy: Proxy | None) -> str:
    """One or two sentences; `host` as the user wrote it."""
    if "has expired" in said or "not yet valid" in said:
        return "renew its certificate, compare the clocks of both machines, or skip the check with --insecure"
    if "ostname mismatch" in said or "IP address mismatch" in said:
        return "give --host as its certificate names it, or skip the check with --insecure"
    if "CERTIFICATE_VERIFY_FAILED" in said:
        return "give the file of its certificate authority with --ca-file, or skip the check with --insecure"
    if "CERTIFICATE_REQUIRED" in said or "HANDSHAKE_FAILURE" in said:
        return "if it asks for a client's certificate, give one with --client-certificate"
    if "[SSL" in said:
        return "if it serves plain HTTP, give --host http://…: without a scheme it is https"
    if proxy is None:
        assumed = "" if "://" in host else f" Without a scheme it is read as https://{host}"
        return f"is --host right, and is the platform running?{assumed}"
    if "407" in said:
        return "put the account into the variable: HTTPS_PROXY=http://USER:PASSWORD@PROXY:PORT (or HTTP_PROXY)"
    return "are --host and the proxy right (HTTPS_PROXY, HTTP_PROXY)? NO_PROXY names what is reached without one"
