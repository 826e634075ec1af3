# What a job runs in, as a Pod and as a microVM. Build from the repository's root:
#   docker build -f deploy/executor.Dockerfile -t gitea-dynamic-runner-executor:0.1.0 .

# The official runner, unmodified, and the SPIRE CLI, by exact version and checked by Go's checksum
# database.
FROM golang:1.26-bookworm AS programs
RUN CGO_ENABLED=0 go install -trimpath -ldflags "-s -w -X gitea.com/gitea/runner/internal/pkg/ver.version=v1.0.8" gitea.com/gitea/runner@v1.0.8 \
 && CGO_ENABLED=0 go install -trimpath -ldflags "-s -w" github.com/spiffe/spire/cmd/spire-agent@v1.13.3

# The identity gate as one file.
FROM denoland/deno:debian-2.9.6 AS gate
WORKDIR /app
COPY deno.json deno.lock .npmrc ./
RUN deno install --frozen
COPY lib ./lib
COPY proto ./proto
COPY controller ./controller
COPY clients ./clients
COPY executor ./executor
COPY deploy/bundle_gate.ts ./deploy/bundle_gate.ts
RUN deno run -A deploy/bundle_gate.ts /gate.mjs

FROM node:24-bookworm-slim
# sudo and Docker are for microVMs: a Pod of level "restricted" gains no rights by them.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends \
      ca-certificates curl docker.io e2fsprogs git git-lfs iptables jq openssh-client python3 sudo unzip xz-utils zip \
 && rm -rf /var/lib/apt/lists/*
# Nobody but root may read these two: a process of an unreadable program is closed to the other
# processes of its user, so that a step cannot read the capability or the task's secrets.
COPY --from=programs --chown=0:0 --chmod=0711 /go/bin/runner /usr/local/bin/gitea-runner
COPY --from=gate --chown=0:0 --chmod=0711 /usr/bin/deno /usr/local/bin/deno
COPY --from=programs --chown=0:0 --chmod=0755 /go/bin/spire-agent /usr/local/bin/spire-agent
COPY --from=gate --chown=0:0 --chmod=0644 /gate.mjs /opt/identity-gate/gate.mjs
COPY --chown=0:0 --chmod=0755 deploy/start-docker /usr/local/bin/start-docker
# Go reads every file of the certificate folder, git, curl and Node do not: the runner alone trusts
# what the gate writes at the end of that link.
RUN groupadd --gid 2000 runner \
 && useradd --uid 2000 --gid 2000 --create-home --shell /bin/bash runner \
 && printf 'runner ALL=(ALL) NOPASSWD: ALL\n' >/etc/sudoers.d/runner \
 && chmod 0440 /etc/sudoers.d/runner \
 && install -d -o 2000 -g 2000 -m 0755 /run/identity-gate \
 && ln -s /run/identity-gate/gate.pem /etc/ssl/certs/zz-identity-gate.pem
ENV DENO_DIR=/opt/identity-gate/cache \
    DENO_NO_UPDATE_CHECK=1 \
    DENO_TLS_CA_STORE=system,mozilla \
    CI_RUNNER_BIN=/usr/local/bin/gitea-runner \
    DOCKER_HOST=unix:///var/run/docker.sock
# Fills V8's code cache, twice so that its database is in order: without a launch environment the gate
# ends with exit code 2.
RUN for _ in 1 2; do deno run --quiet --no-config --no-lock --no-remote --no-npm --allow-all /opt/identity-gate/gate.mjs || test "$?" = 2; done
WORKDIR /home/runner
USER 2000:2000
# Directly, not below a shell, which would keep the capability in its environment.
ENTRYPOINT ["/usr/local/bin/deno", "run", "--quiet", "--no-prompt", "--no-config", "--no-lock", "--no-remote", "--no-npm", "--cached-only", "--v8-flags=--max-semi-space-size=1,--max-old-space-size=256", "--allow-net", "--allow-read", "--allow-write", "--allow-env", "--allow-run", "/opt/identity-gate/gate.mjs"]
