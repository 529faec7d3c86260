#!/bin/sh
# install.sh: makes this machine node @name@ of the cluster @cluster@. Run it as root; you can
# repeat it. Written by scripts/deploy.
set -eu
cd "$(dirname "$0")"
die() {
	echo "install.sh: $*" >&2
	exit 1
}

[ "$(id -u)" = 0 ] || die "run this as root"
if ls ./*.deb >/dev/null 2>&1; then
	# On the way back, the packages are older than those that are installed. What they
	# recommend is for `pawl deploy`, which nobody runs on a node's host.
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
		-o Dpkg::Use-Pty=0 ${BACK:+--allow-downgrades} \
		-o Dpkg::Options::=--force-confold ./*.deb \
		>install.log 2>&1 ||
		{ tail -n 20 install.log && die "the packages cannot be installed"; }
fi
command -v pawld >/dev/null || die "pawld is not installed: put the packages pawld, pawl and" \
	"libpawl2 into the directory of this script"
getent passwd pawl >/dev/null || die "there is no user pawl, which the package pawld makes"

# A machine that is another node already must stay that node, because it has made promises as that
# node.
if [ -e @state_dir@/state ] && [ -e @config_dir@/pawld.conf ] &&
	! grep -qx 'name = @name@' @config_dir@/pawld.conf; then
	die "this machine is another node: $(grep -m 1 '^name = ' @config_dir@/pawld.conf)." \
		"Wrong directory, or wrong host?"
fi

# The new files are checked where nothing uses them. Those in use are replaced only if pawld finds
# nothing wrong with the new ones.
install -d -m 750 -g pawl @config_dir@
new=$(mktemp -d @config_dir@/check.XXXXXX)
trap 'rm -rf "$new"' EXIT
chgrp pawl "$new" && chmod 750 "$new"
install -m 640 -g pawl ca.crt @name@.crt @name@.key pawld.conf rights.conf "$new/"
sed -E "s%^(ca|cert|key|file) = @config_dir@/%\\1 = $new/%" pawld.conf >"$new/pawld.conf"
setpriv --reuid pawl --regid pawl --clear-groups pawld --check-config "$new/pawld.conf" ||
	die "pawld refuses this configuration: the one that is in use stays"
install -m 640 -g pawl ca.crt @name@.crt @name@.key pawld.conf rights.conf @config_dir@/
install -D -m 644 unit.conf /etc/systemd/system/pawld.service.d/cluster.conf

if [ ! -d /run/systemd/system ]; then
	echo "systemd does not run here: start pawld --config @config_dir@/pawld.conf yourself," \
		"as the user pawl"
	exit 0
fi
systemctl daemon-reload
systemctl enable --quiet pawld
if systemctl is-active --quiet pawld; then
	systemctl reload pawld
	echo "@name@ was running, and was reloaded; if a change needs a restart:" \
		"systemctl restart pawld, one node after the other"
else
	systemctl start pawld
	echo "@name@ was started"
fi
