#!/usr/bin/env bash
# Builds the image from the Dockerfile with whichever engine is here, and says which one it was.
#
#   scripts/image/build.sh [slim|uv] [NAME]
#
# ENGINE names the program: docker, podman or buildah; the first that works is taken otherwise. Where the official Node image
# cannot be pulled, a base image is made of Debian's packages and the Node of the npm registry (base-image.sh). NODE_IMAGE and
# UV_IMAGE name images to use in place of the Dockerfile's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

variant=${1:-slim}
name=${2:-mcp-portage:$variant}
engine=${ENGINE:-}

works() {
  case $1 in
    buildah) buildah info ;;
    *) "$1" info ;;
  esac >/dev/null 2>&1
}

for candidate in docker podman buildah; do
  if [ -z "$engine" ] && works "$candidate"; then engine=$candidate; fi
done
if [ -z "$engine" ]; then
  echo 'No container engine works here: install docker, podman or buildah.' >&2
  exit 69
fi
# crun refuses machines with cgroups of both versions; runc takes them.
run=("$engine")
if [ "$engine" = podman ] && command -v runc >/dev/null; then run+=(--runtime runc); fi

options=(--target "$variant" --tag "$name")
# The health check is no part of the OCI format.
if [ "$engine" != docker ]; then options+=(--format docker); fi

if [ -z "${NODE_IMAGE:-}" ] && ! "$engine" pull --quiet docker.io/library/node:22-slim >/dev/null 2>&1; then
  NODE_IMAGE=localhost/mcp-portage-node:22
  if ! "$engine" inspect "$NODE_IMAGE" >/dev/null 2>&1; then scripts/image/base-image.sh "$NODE_IMAGE" "${run[@]}"; fi
fi
if [ -n "${NODE_IMAGE:-}" ]; then options+=(--build-arg "NODE_IMAGE=$NODE_IMAGE"); fi
if [ -n "${UV_IMAGE:-}" ]; then options+=(--build-arg "UV_IMAGE=$UV_IMAGE"); fi
# Without a daemon that may do more, and with the layers of the build before, as the others do by themselves.
if [ "$engine" = buildah ]; then options+=(--isolation chroot --layers); fi

# A base image that was made here is used where the network may be one that only this machine knows.
if [[ "${NODE_IMAGE:-}" == localhost/* ]]; then options+=(--network host); fi

"${run[@]}" build "${options[@]}" .
echo "built $name with $engine${NODE_IMAGE:+ on $NODE_IMAGE}"
