# root.sh: a bare Debian 12 in a directory, for scripts that try things where nothing is installed.
# They source it after lib.sh.
# shellcheck shell=bash

suite=bookworm
# More options of unshare for in_root.
root_unshared=()

# Prints where this machine's apt finds Debian 12, or nothing.
debian_mirror() {
	apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 2>/dev/null |
		awk -v suite=$suite '$2 == suite && $3 == "main" { print $1; exit }'
}

# Prints why a system cannot be made here, or nothing.
no_bare_debian() {
	if [ "$(id -u)" != 0 ]; then
		echo "needs root, for debootstrap and chroot"
	elif [ -z "$(debian_mirror)" ]; then
		echo "this machine's apt knows no mirror of Debian 12 ($suite)"
	elif ! unshare --mount --pid --net --fork true 2>/dev/null; then
		echo "this machine allows no namespaces (unshare)"
	fi
}

# skip WHAT WHY: ends the step of scripts/test as one skipped test.
skip() {
	echo "skipped: $1: $2"
	echo "passed=0 failed=0 skipped=1"
	exit 0
}

# need_bare_debian WHAT TOOL...: installs the tools, and ends the step as one skipped test if no
# system can be made.
need_bare_debian() {
	local what=$1 why
	shift
	why=$(no_bare_debian)
	[ -z "$why" ] || skip "$what" "$why"
	(install_packages "${packages_root[@]}" "$@") ||
		skip "$what" "debootstrap is missing and cannot be installed"
}

# bare_debian DIR: makes a bare system in the directory, unless there is one.
bare_debian() {
	local dir=$1
	if [ ! -e "$dir/etc/debian_version" ]; then
		say "making a bare Debian 12 in $dir"
		mkdir -p "$(dirname "$dir")"
		debootstrap --variant=minbase $suite "$dir" "$(debian_mirror)" >"$dir.log" 2>&1 ||
			{ tail -n 20 "$dir.log"; die "debootstrap failed"; }
		rm -f "$dir.log"
	fi
	# The new system reaches the mirror in the same way as this machine, whatever way that is.
	cp /etc/resolv.conf /etc/hosts "$dir/etc/"
	apt-config dump Acquire | grep -i '::proxy' >"$dir/etc/apt/apt.conf.d/90proxy" || true
}

# in_root DIR COMMAND...: runs the command with the directory as its root, in namespaces of its own.
# So whatever is mounted or started inside vanishes with the command. It begins in /.
in_root() {
	# shellcheck disable=SC2016 # for the inner shell
	unshare --mount --pid --fork --kill-child "${root_unshared[@]}" bash -eu -c '
		mount --make-rprivate /
		# Whatever makes network namespaces inside needs a / that is a mount point.
		mount --bind "$0" "$0"
		mount -t proc proc "$0/proc"
		mount --rbind /dev "$0/dev"
		ip link set lo up
		exec chroot "$0" /usr/bin/env -i HOME=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin \
			TERM=dumb LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
	' "$@"
}

# Does the same as in_root, with no network but a loopback of its own.
in_root_alone() {
	local root_unshared=(--net)
	in_root "$@"
}
