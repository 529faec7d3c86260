# lib.sh: what the other scripts share. They source it. Functions that take a while say on stdout
# what they do, in one line for each step.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export LC_ALL=C.UTF-8

# Packages under their names in Debian 12: what the programs are built with, what they run with, and
# what the tests need in addition.
packages_build=(gcc libc6-dev binutils meson ninja-build pkg-config python3 libevent-dev libssl-dev
	libjansson-dev libmsgpack-dev libsystemd-dev)
packages_run=(openssl procps)
packages_test=(clang libclang-rt-dev llvm libcmocka-dev iproute2 nftables mypy postgresql-15
	prometheus python3-redis python3-pymemcache python3-pylibmc python3-memcache memcached
	redis-server python3-venv python3-setuptools python3-wheel python3-yaml man-db mandoc zsh
	fish)
packages_package=(build-essential debhelper dh-python dpkg-dev)
# For a bare system in a directory.
packages_root=(debootstrap iproute2)

say() {
	printf '== %s\n' "$*"
}

die() {
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

# answer_help ARGUMENT...: if the first argument asks for help, prints the comment at the top of the
# script and ends the script.
answer_help() {
	case "${1-}" in
	-h | --help)
		sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"
		exit 0
		;;
	esac
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

# Keeps the package of PostgreSQL from starting a server on this machine. The tests start one of
# their own, on a socket in a directory.
no_database_of_its_own() {
	local file=/etc/postgresql-common/createcluster.conf
	[ -e $file ] ||
		as_root sh -c "mkdir -p ${file%/*} && echo 'create_main_cluster = false' >$file"
}

# Does the same for a package whose programs alone the tests use.
no_service_of_its_own() {
	local unit=/etc/systemd/system/$1.service
	[ ! -d ${unit%/*} ] || [ -e "$unit" ] || [ -L "$unit" ] || as_root ln -s /dev/null "$unit"
}

# install_packages NAME...: installs those of the packages that are missing.
install_packages() {
	local name
	missing=()
	if ! command -v dpkg-query >/dev/null; then
		say "this is not a Debian, so the packages must be there already"
		return 0
	fi
	for name in "$@"; do
		dpkg-query -W -f '${db:Status-Status}\n' "$name" 2>/dev/null | grep -qx installed ||
			missing+=("$name")
	done
	if [ ${#missing[@]} = 0 ]; then
		say "packages: all ${#} are installed"
		return 0
	fi
	say "packages: installing ${missing[*]} (a few minutes on a bare system)"
	local log
	log=$(mktemp)
	case " ${missing[*]} " in *" postgresql-"*) no_database_of_its_own ;; esac
	for name in prometheus redis-server; do
		case " ${missing[*]} " in *" $name "*) no_service_of_its_own $name ;; esac
	done
	if ! { as_root apt-get update -qq && as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-confold \
		"${missing[@]}"; } >"$log" 2>&1; then
		tail -n 20 "$log" >&2
		rm -f "$log"
		die "could not install ${missing[*]}"
	fi
	rm -f "$log"
	say "packages: installed"
}

# Prints the names of the project's files, each with a zero byte after it: those that git knows, or
# in an unpacked archive all but what was built. Run this in the project's root.
project_files() {
	if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
		git ls-files -z
	else
		find . -name __pycache__ -prune -o \( -path ./build -o -path ./out \) -prune -o \
			\( -type f -o -type l \) -print0
	fi
}

# packages_are_new DIR: says so if the Debian packages in the directory are newer than each of the
# project's files, and fails otherwise. Run this in the project's root.
packages_are_new() {
	local built newer
	built=$(echo "$1"/pawld_*.deb)
	[ -e "$built" ] || return 1
	# shellcheck disable=SC2016 # for the inner shell
	newer=$(project_files | xargs -0 sh -c 'find "$@" -newer "$0" -print -quit' "$built")
	[ -z "$newer" ] && say "the packages in $1 are newer than the project's files"
}

# configure DIR COMPILER OPTION...: sets up a build directory, unless it exists, in which warnings
# are errors. Meson itself notices later changes. Run this in the project's root.
configure() {
	local dir=$1 compiler=$2 said
	shift 2
	if [ ! -f "$dir/build.ninja" ]; then
		rm -rf "$dir"
		said=$(CC=$compiler meson setup "$dir" --werror "$@" 2>&1) ||
			{ echo "$said"; return 1; }
	fi
}

# These build in build/run, build/release, build/asan and build/fuzz. In build/run are the programs
# alone, without the tests and what they need.
build_run() {
	configure build/run gcc --buildtype=release -Dtests=false && ninja -C build/run
}

# The tests take the pawld that is linked from the libraries: as one program it would take a fifth
# of the time of this build (docs/decisions/0030-pawld-as-a-whole.md). build/run has it so, and the
# packages, which test-packages and test-operations try.
configure_release() {
	configure build/release gcc --buildtype=release -Dwhole=false
}

build_release() {
	configure_release && ninja -C build/release
}

sanitized=(--buildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false)

build_asan() {
	configure build/asan clang "${sanitized[@]}" && ninja -C build/asan
}

# build_types [TYPE...]: builds the programs with gcc and clang, as somebody else may: with each of
# these build types of Meson, or "debug", which is quick and which no other build has.
build_types() {
	local type compiler dir
	for type in "${@:-debug}"; do
		for compiler in gcc clang; do
			dir=build/types/$compiler-$type
			configure "$dir" $compiler --buildtype="$type" -Dtests=false &&
				ninja -C "$dir" || return 1
		done
	done
}

# Builds the simulator alone, in build/sim, with link-time and profile-guided optimization. So it
# needs 30 % less processor time for a seed, and twice the time to build. The profile comes from a
# short run; code that has changed since then is only a little slower.
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
	configure build/fuzz clang "${sanitized[@]}" -Dfuzz=true && ninja -C build/fuzz fuzz
}

# built COMMAND...: for scripts/test a build without a warning is one test that has passed.
built() {
	"$@" && echo "passed=1 failed=0 skipped=0"
}
