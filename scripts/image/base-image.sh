#!/usr/bin/env bash
# Makes an image that has what the official Node image for Debian has: a minimal Debian, Node, npm and the user `node`.
#
#   scripts/image/base-image.sh NAME ENGINE [OPTION...]
#
# Needs mmdebstrap and npm. The certificates that this machine trusts are trusted in the image, too, for it is built where the
# registries may be reached through a proxy of one's own. It is for trying the Dockerfile out, not for publishing.
set -euo pipefail

name=$1
shift
engine=("$@")
node_version=22
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

mmdebstrap --quiet --variant=minbase --include=ca-certificates bookworm "$folder/root.tar"
npm install --silent --no-save --prefix "$folder/npm" "node@$node_version" npm@11

mkdir -p "$folder/image/usr/local/bin" "$folder/image/usr/local/lib/node_modules" "$folder/image/etc/ssl/certs"
install -m 755 "$(find "$folder/npm/node_modules" -path '*/bin/node' -type f | head -n 1)" "$folder/image/usr/local/bin/node"
cp -a "$folder/npm/node_modules/npm" "$folder/image/usr/local/lib/node_modules/npm"
ln -s ../lib/node_modules/npm/bin/npm-cli.js "$folder/image/usr/local/bin/npm"
ln -s ../lib/node_modules/npm/bin/npx-cli.js "$folder/image/usr/local/bin/npx"
cp -L /etc/ssl/certs/ca-certificates.crt "$folder/image/etc/ssl/certs/ca-certificates.crt"
cp "$folder/root.tar" "$folder/image/root.tar"
cat >"$folder/image/Dockerfile" <<'DOCKERFILE'
FROM scratch
ADD root.tar /
COPY usr /usr
COPY etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
RUN groupadd --gid 1000 node && useradd --uid 1000 --gid node --shell /bin/bash --create-home node
ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
CMD ["node"]
DOCKERFILE
options=()
if [ "${engine[0]}" = buildah ]; then options+=(--isolation chroot); fi
"${engine[@]}" build --quiet "${options[@]}" --tag "$name" "$folder/image"
