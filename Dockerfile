# Builds the bundle with all tools, then keeps only what runs. Two variants:
#   docker build .                 for servers that run on Node (npx)
#   docker build --target uv .     for servers written in Python as well (uvx)
# Where these images cannot be pulled, scripts/image/build.sh makes a base image from Debian packages.
ARG NODE_IMAGE=node:22-slim
ARG UV_IMAGE=ghcr.io/astral-sh/uv:0.9

FROM ${NODE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc tsconfig.json ./
# Scripts would build before the sources are here; no package that is needed has any.
RUN npm ci --ignore-scripts
COPY scripts ./scripts
COPY src ./src
# The explanations of the error codes are part of the help.
COPY docs/reference/errors.md ./docs/reference/errors.md
RUN npm run build

FROM ${NODE_IMAGE} AS slim
# As process 1, Node would neither reap orphans (npx and shells leave some) nor get default signal handling; tini does.
RUN apt-get update \
  && apt-get install --yes --no-install-recommends tini \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /app
# For --pty; everything else is in the bundle.
COPY --from=build /build/node_modules/@lydell ./node_modules/@lydell
COPY --from=build /build/dist ./dist
COPY package.json LICENSE ./
COPY bin ./bin
COPY scripts/healthcheck.js ./scripts/healthcheck.js

# The image's user without privileges; npx needs its home directory for the cache.
USER node
WORKDIR /home/node

# Loopback inside a container reaches nobody. What may reach the port is decided where it is published, which cannot be
# seen from here: whoever runs a server says how callers are authenticated, or --allow-anonymous.
# The health check goes by the options of the command line first, and then by the environment, as the bridge does.
ENV MCP_PORTAGE_HOST=0.0.0.0 \
    MCP_PORTAGE_PORT=8000
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 \
  CMD ["node", "/app/scripts/healthcheck.js"]

ENTRYPOINT ["/usr/bin/tini", "--", "node", "/app/bin/mcp-portage.js"]
CMD ["--help"]

FROM ${UV_IMAGE} AS uv-programs

FROM slim AS uv
USER root
RUN apt-get update \
  && apt-get install --yes --no-install-recommends python3 \
  && rm -rf /var/lib/apt/lists/*
COPY --from=uv-programs /uv /uvx /usr/local/bin/
USER node

# What is built when no variant is named.
FROM slim
