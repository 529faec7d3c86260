#!/bin/bash
# program.sh PACKAGES VERSION DIR: builds programs with the files of the development package, with
# the shared libraries and with the static ones, and runs them. It makes the directory DIR.
set -eu
packages=$1 version=$2 dir=$3
here=$(cd "$(dirname "$0")/../.." && pwd)

mkdir -p "$dir/sysroot"
for name in libpawl2 libpawl-node2 libpawl-dev; do
	dpkg-deb -x "$packages/${name}_$version"_*.deb "$dir/sysroot"
done
libraries=$(dirname "$(find "$dir/sysroot/usr/lib" -name pkgconfig)")
export PKG_CONFIG_PATH=$libraries/pkgconfig

# Prints what pkg-config says, with our own files where they are unpacked. Those of the system stay
# where they are.
flags() { pkg-config --cflags "$@" | sed "s|-\([IL]\)/usr|-\1$dir/sysroot/usr|g"; }

# build EXAMPLE PACKAGE...
build() {
	local example=$1
	shift
	# shellcheck disable=SC2046 # several words
	cc -o "$dir/$example-shared" "$here/examples/$example.c" -I"$dir/sysroot/usr/include" \
		-L"$libraries" $(flags --libs "$@")
	# shellcheck disable=SC2046
	cc -o "$dir/$example-static" "$here/examples/$example.c" -I"$dir/sysroot/usr/include" \
		-L"$libraries" $(flags --static --libs "$@" |
			sed 's/-lpawl-node/-l:libpawl-node.a/g; s/-lpawl\b/-l:libpawl.a/g')
}

# says STATUS PATTERN PROGRAM ARGUMENT...: runs the program, which must end with this status and
# print the pattern.
says() {
	local wanted=$1 pattern=$2 status=0 said
	shift 2
	said=$(: | LD_LIBRARY_PATH=$libraries timeout 20 "$@" 2>&1) || status=$?
	[ $status = "$wanted" ] && grep -q "$pattern" <<<"$said" ||
		{ echo "FAILED $*: status $status, $said" && exit 1; }
}

build blocking pawl
build embedded pawl-node libevent_core
readelf -d "$dir/blocking-shared" | grep -q 'NEEDED.*libpawl.so.2]'
readelf -d "$dir/embedded-shared" | grep -q 'NEEDED.*libpawl-node.so.2]'
! readelf -d "$dir/blocking-static" "$dir/embedded-static" | grep -q 'NEEDED.*libpawl'
for kind in shared static; do
	says 1 'not acquired' "$dir/blocking-$kind" 127.0.0.1:1 key # nobody answers there
	says 0 'drained in epoch 0' "$dir/embedded-$kind" mine example "$dir/state-$kind" \
		127.0.0.1:0 a=127.0.0.1:1 key
done

# The Python package is imported from where it was unpacked, and knows its version.
dpkg-deb -x "$packages/python3-pawl_${version}_all.deb" "$dir/python"
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$dir/python/usr/lib/python3/dist-packages \
	says 0 "^$version code=unreachable$" python3 -c 'import pawl
client = pawl.connect("127.0.0.1:1", timeout=0.1)
try:
    client.ping()
except pawl.UnreachableError as error:
    print(pawl.__version__, "code=" + error.code)
client.close()'
echo "ok     programs are built with the development package, and the Python package is one"
