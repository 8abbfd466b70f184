#!/bin/sh
# Makes the folder of a layer for AWS Lambda, to be zipped: Holdfast as an extension, with all that it needs from the
# machine it was built on, since Lambda's own has older libraries.
#
#   layer.sh PROGRAM FOLDER          extensions/holdfast, and holdfast/ with the program, its libraries, certificates
set -eu
if [ $# -ne 2 ] || [ ! -x "$1" ] || [ -e "$2" ]; then
  echo "layer: say the program, which is there, and a folder, which is not yet: layer.sh PROGRAM FOLDER" >&2
  exit 2
fi
mkdir -p "$2/extensions" "$2/holdfast"
cp "$1" "$2/holdfast/holdfast"
# libcurl is loaded when it is needed first.
curl=$(PATH="$PATH:/sbin:/usr/sbin" ldconfig -p | awk '$1 == "libcurl.so.4" { print $NF; exit }')
cp -L "${curl:?libcurl.so.4 is not installed}" "$2/holdfast/"
ldd "$1" "$curl" | awk '$2 == "=>" { print $3 } $1 ~ /^\/.*so/ && NF == 2 { print $1 }' | sort -u |
  while read -r library; do cp -L "$library" "$2/holdfast/"; done
cp -L /etc/ssl/certs/ca-certificates.crt "$2/holdfast/"
cat >"$2/holdfast/run" <<'SCRIPT'
#!/bin/sh
# The program with its own libraries. Its arguments are those of `holdfast`.
here=$(dirname "$0")
export AWS_CA_BUNDLE="${AWS_CA_BUNDLE:-$here/ca-certificates.crt}"
exec "$here"/ld-linux-*.so.* --library-path "$here" "$here/holdfast" "$@"
SCRIPT
cat >"$2/extensions/holdfast" <<'SCRIPT'
#!/bin/sh
# Started by Lambda. The settings are the function's environment: HOLDFAST_STORE, HOLDFAST_LISTEN, ...
exec "$(dirname "$0")/../holdfast/run" serve --lambda-extension --extension-name "$(basename "$0")"
SCRIPT
chmod +x "$2/holdfast/run" "$2/extensions/holdfast"
