# lib.sh: what the other scripts share; source it. Every function says on stdout what it does, one line a step.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export LC_ALL=C.UTF-8

# Debian 12's names. Building the programs, and what the tests need besides.
packages_build=(gcc libc6-dev binutils meson ninja-build pkg-config python3 libevent-dev libssl-dev
	libjansson-dev libmsgpack-dev libsystemd-dev)
packages_run=(openssl procps)
packages_test=(clang libclang-rt-dev llvm libcmocka-dev iproute2 nftables mypy postgresql-15
	python3-venv python3-setuptools python3-wheel)
packages_package=(debhelper dh-python dpkg-dev)
packages_root=(debootstrap iproute2) # a bare system in a directory

say() {
	printf '== %s\n' "$*"
}

die() {
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "needs root to install packages: run as root, or install: ${missing[*]}"
	fi
}

# The tests start a server of their own, on a socket in a directory: to install PostgreSQL need not start another one on this machine.
no_database_of_its_own() {
	local file=/etc/postgresql-common/createcluster.conf
	[ -e $file ] || as_root sh -c "mkdir -p ${file%/*} && echo 'create_main_cluster = false' >$file"
}

# install_packages NAME...: installs those that are missing, and nothing when none is.
install_packages() {
	local name
	missing=()
	command -v dpkg-query >/dev/null || { say "not a Debian: the packages are expected to be there"; return 0; }
	for name in "$@"; do
		dpkg-query -W -f '${db:Status-Status}\n' "$name" 2>/dev/null | grep -qx installed || missing+=("$name")
	done
	if [ ${#missing[@]} = 0 ]; then
		say "packages: all ${#} there"
		return 0
	fi
	say "packages: installing ${missing[*]} (a few minutes on a bare system)"
	local log
	log=$(mktemp)
	case " ${missing[*]} " in *" postgresql-"*) no_database_of_its_own ;; esac
	if ! { as_root apt-get update -qq && as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-confold "${missing[@]}"; } >"$log" 2>&1; then
		tail -n 20 "$log" >&2
		rm -f "$log"
		die "could not install ${missing[*]}"
	fi
	rm -f "$log"
	say "packages: installed"
}

# configure DIR COMPILER OPTION...: sets up a build directory once; meson itself notices changes later. Run in the root.
configure() {
	local dir=$1 compiler=$2
	shift 2
	if [ ! -f "$dir/build.ninja" ]; then
		rm -rf "$dir"
		CC=$compiler meson setup "$dir" "$@" >"/tmp/pawl-setup.$$" 2>&1 || { cat "/tmp/pawl-setup.$$"; rm -f "/tmp/pawl-setup.$$"; return 1; }
		rm -f "/tmp/pawl-setup.$$"
	fi
}

# Builds in build/run (the programs alone, without the tests and what they need), build/release, build/asan and build/fuzz. Warnings
# are errors.
build_run() {
	configure build/run gcc --buildtype=release -Dtests=false && ninja -C build/run
}

build_release() {
	configure build/release gcc --buildtype=release && ninja -C build/release
}

build_asan() {
	configure build/asan clang --buildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false && ninja -C build/asan
}

# The simulator alone, in build/sim: optimized as a whole, and for what a short run has shown it to do
# most. It needs 30 % less processor time a seed, and twice the time to build. Where the code has
# changed since that run, this only makes it a little slower.
build_sim() {
	local dir=build/sim program=tests/sim/pawl-sim
	configure "$dir" gcc --buildtype=release -Db_lto=true -Db_pgo=generate \
		"-Dc_args=-Wno-missing-profile -Wno-coverage-mismatch" || return 1
	if [ ! -e "$dir/profiled" ]; then
		ninja -C "$dir" "$program" && "$dir/$program" --seeds 60 >/dev/null &&
			meson configure "$dir" -Db_pgo=use && touch "$dir/profiled" || return 1
	fi
	ninja -C "$dir" "$program"
}

build_fuzz() {
	configure build/fuzz clang --buildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false -Dfuzz=true -Dtests=true &&
		ninja -C build/fuzz fuzz
}

# built COMMAND...: for the test command, a build without a warning is one passed test.
built() {
	"$@" && echo "passed=1 failed=0 skipped=0"
}
