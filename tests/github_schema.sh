#!/bin/sh
# Fetches GitHub's published description of its API into build/, for the tests
# that hold our stub of GitHub and our witness server against it.
set -eu
cd "$(dirname "$0")/.."
wanted=829b4bebb19a53133289f7b0bc819f4f1118115821db2ca9f25e9ee995a7da2a
folder=build/octokit-openapi
file=$folder/api.github.com.json
if [ -f "$file" ] && echo "$wanted  $file" | sha256sum -c --status; then
  exit 0
fi
mkdir -p "$folder"
work=$(mktemp -d "$folder/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
npm pack --silent --pack-destination "$work" @octokit/openapi@23.0.2 >/dev/null
tar -xzf "$work"/*.tgz -C "$work" package/generated/api.github.com.json
mv "$work/package/generated/api.github.com.json" "$work/found.json"
echo "$wanted  $work/found.json" | sha256sum -c --status || { echo "not the description that was pinned" >&2; exit 1; }
mv "$work/found.json" "$file"
