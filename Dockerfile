# One image for every service of docker-compose.yml and deploy/kubernetes; which one it is, the command says.
# A release builds with the digest: --build-arg BASE=python:3.11-slim@sha256:…
ARG BASE=python:3.11-slim
FROM $BASE AS build
RUN python -m venv /opt/pipeswarm
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY deploy/install.py deploy/install.py
COPY pipeswarm pipeswarm
COPY harness harness
COPY generators generators
COPY reports reports
COPY locustfiles locustfiles
# Every file is checked by its hash in constraints.txt.
RUN PIP_NO_CACHE_DIR=1 /opt/pipeswarm/bin/python deploy/install.py

FROM $BASE
RUN useradd --create-home --uid 10001 pipeswarm && install -d -o pipeswarm /shared
COPY --from=build /opt/pipeswarm /opt/pipeswarm
ENV PATH=/opt/pipeswarm/bin:$PATH PYTHONUNBUFFERED=1
WORKDIR /home/pipeswarm
COPY --chown=pipeswarm locustfiles locustfiles
COPY --chown=pipeswarm harness/targets/training.yaml training.yaml
# By number: a cluster that asks for non-root users can't look up names in an image.
USER 10001
RUN mkdir runs
# Locust's operator gives options only: they are Locust's.
ENTRYPOINT ["sh", "-c", "case \"$1\" in -*) exec locust \"$@\" ;; *) exec \"$@\" ;; esac", "sh"]
# Inside of a container loopback reaches nobody; who reaches the web UI is decided by what is published.
CMD ["locust", "-f", "locustfiles/kfp.py", "--web-host", "0.0.0.0"]
