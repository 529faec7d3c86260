#!/bin/bash
# program.sh PACKAGES VERSION DIR: a program is built with what the development package brings, and runs. DIR is made.
set -eu
packages=$1 version=$2 dir=$3
here=$(cd "$(dirname "$0")/../.." && pwd)

mkdir -p "$dir/sysroot"
for name in libpawl1 libpawl-node1 libpawl-dev; do dpkg-deb -x "$packages/${name}_$version"_*.deb "$dir/sysroot"; done
libraries=$(dirname "$(find "$dir/sysroot/usr/lib" -name pkgconfig)")
export PKG_CONFIG_PATH=$libraries/pkgconfig

# The paths of the system's own packages must stay as they are, so only ours are moved.
flags() { pkg-config "$@" pawl | sed "s|-\([IL]\)/usr|-\1$dir/sysroot/usr|g"; }
# shellcheck disable=SC2046 # several words
cc -o "$dir/shared" "$here/examples/blocking.c" -I"$dir/sysroot/usr/include" -L"$libraries" $(flags --cflags --libs)
# shellcheck disable=SC2046
cc -o "$dir/static" "$here/examples/blocking.c" -I"$dir/sysroot/usr/include" "$libraries/libpawl.a" \
	$(flags --static --libs | sed 's/-lpawl //')
for program in shared static; do
	[ $program = static ] || readelf -d "$dir/$program" | grep -q 'NEEDED.*libpawl.so.1]'
	# Nobody answers there, and the program says so: it runs.
	status=0
	said=$(LD_LIBRARY_PATH=$libraries PAWL_ENDPOINTS=127.0.0.1:1 timeout 20 "$dir/$program" 2>&1) || status=$?
	[ $status != 0 ] && [ $status -lt 124 ] && [ -n "$said" ] || { echo "FAILED the $program program: status $status, $said"; exit 1; }
done
echo "ok     a program is built with the development package"
