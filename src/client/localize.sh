#!/bin/sh
# localize.sh OUT PRIVATE_DIR NAMES CC... -- ARCHIVE...: makes one archive of several. Only NAMES
# (such as 'pawl_*') can be seen from outside, so that the library's inner names cannot clash with
# those of a program that links it statically.
set -eu
out=$1 dir=$2 names=$3
shift 3
cc=
while [ "$1" != -- ]; do
	cc="$cc $1"
	shift
done
shift
mkdir -p "$dir"
# shellcheck disable=SC2086 # the compiler may be several words
$cc -r -nostdlib -no-pie -o "$dir/whole.o" -Wl,--whole-archive "$@"
objcopy --wildcard --keep-global-symbol="$names" "$dir/whole.o"
rm -f "$out"
ar rcs "$out" "$dir/whole.o"
