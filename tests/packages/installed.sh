#!/bin/bash
# installed.sh VERSION: runs in a bare system in which the packages pawl and pawld have just been
# installed, in a network of its own. scripts/test-packages starts it.
set -u
version=$1
passed=0 failed=0
cd /

# check WHAT COMMAND...: one test.
check() {
	local what=$1 text
	shift
	if text=$("$@" 2>&1); then
		echo "ok     $what"
		passed=$((passed + 1))
	else
		printf 'FAILED %s\n%s\n' "$what" "$text"
		failed=$((failed + 1))
	fi
}

as_pawl=(setpriv --reuid pawl --regid pawl --init-groups --inh-caps=-all)

await() {
	local end=$((SECONDS + 20))
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}

same() { [ "$1" = "$2" ] || { echo "$1, not $2"; return 1; }; }
says_version() { same "$("$1" --version | head -n 1)" "$1 $version"; }
mode() { same "$(stat -c '%a %U:%G' "$1")" "$2"; }

check "pawl says its version" says_version pawl
check "pawld says its version" says_version pawld
there() {
	local file
	for file in "$@"; do
		[ -s "$file" ] || { echo "there is no $file" && return 1; }
	done
}
check "the manual pages are there" there /usr/share/man/man1/pawl{,-run,-deploy,-can}.1.gz \
	/usr/share/man/man5/pawl{,d}.conf.5.gz /usr/share/man/man8/pawld.8.gz
check "three shells know the command" there /usr/share/bash-completion/completions/pawl.bash \
	/usr/share/zsh/vendor-completions/_pawl /usr/share/fish/vendor_completions.d/pawl.fish
check "the guide's examples can be run" test -x /usr/share/doc/pawl/docs/guide/examples/append.sh
check "pawl deploy finds its templates" there /usr/share/pawl/deploy/{deploy,install,install.sh,env}
check "the node's user is there and cannot log in" \
	grep -Eq '^pawl:.*:/var/lib/pawl:.*nologin$' /etc/passwd
check "the configuration is for root and the node" mode /etc/pawl "750 root:pawl"
check "the state directory is the node's alone" mode /var/lib/pawl "700 pawl:pawl"
check "the configuration is one that dpkg looks after" \
	sh -c "dpkg-query -W -f '\${Conffiles}' pawld | grep -q /etc/pawl/pawld.conf"
check "the node can read it, and finds nothing wrong" \
	"${as_pawl[@]}" pawld --check-config /etc/pawl/pawld.conf
check "the unit is well formed" systemd-analyze verify /lib/systemd/system/pawld.service
check "the unit is locked down" \
	systemd-analyze security --offline=true --threshold=20 /lib/systemd/system/pawld.service
check "the unit is not enabled before it is configured" \
	sh -c '! find /etc/systemd -name "pawld*" | grep .'

# These three nodes have the configuration that was installed, except for what must differ.
nodes=()
client() { pawl --endpoints "127.0.0.1:71${1}7" "${@:2}"; }
votes() { client "$1" status --json | grep -q '"state": *"voting"'; }
start() {
	local name=$1 number=$2 file=/etc/pawl/pawld.conf
	if [ "$name" != a ]; then
		file=/etc/pawl/$name.conf
		sed -e "s/^name = a$/name = $name/" \
			-e "s|^#state_dir = .*|state_dir = /var/lib/pawl/$name|" \
			-e "s/^#listen_client = .*/listen_client = 127.0.0.1:71${number}7/" \
			/etc/pawl/pawld.conf >$file
	fi
	"${as_pawl[@]}" pawld --config "$file" 2>"/tmp/$name.log" &
	nodes+=($!)
}
start a 1
start b 2
start c 3
for number in 1 2 3; do check "node $number votes, as its user" await votes $number; done
check "a lock is acquired" client 1 acquire printer --lease 5s
check "another node knows who holds it" \
	sh -c 'pawl --endpoints 127.0.0.1:7137 get printer --quorum | grep -q token'
check "a command runs under a lock" \
	pawl --endpoints 127.0.0.1:7127 run nightly --lease 5s -- sh -c 'test -n "$PAWL_TOKEN"'
for number in 0 1 2; do
	kill -TERM "${nodes[$number]}"
	status=0
	wait "${nodes[$number]}" || status=$?
	check "node $((number + 1)) stops as it is told to" same $status 0
done
check "its state is where the package said" test -s /var/lib/pawl/state

rm -rf /etc/pawl/[bc].conf /var/lib/pawl/*

# The install.sh that scripts/deploy wrote for a host installs its files.
check "the script of scripts/deploy installs a node" /packages/host/install.sh
check "and may be repeated" /packages/host/install.sh
spoiled() {
	local before
	before=$(cat /etc/pawl/pawld.conf) && cp -a /packages/host /tmp/spoiled &&
		echo 'nonsense = 1' >>/tmp/spoiled/pawld.conf && ! /tmp/spoiled/install.sh &&
		same "$(cat /etc/pawl/pawld.conf)" "$before"
}
check "but not with what pawld would refuse: the configuration stays" spoiled
check "the certificates' keys are for root and the node" mode /etc/pawl/solo.key "640 root:pawl"
check "the unit is still well formed" systemd-analyze verify /lib/systemd/system/pawld.service
install -d -o pawl -g pawl /run/pawl # the unit does that
"${as_pawl[@]}" pawld --config /etc/pawl/pawld.conf 2>/tmp/solo.log &
deployed=$!
votes_here() {
	pawl --endpoints unix:/run/pawl/pawld.sock status --json | grep -q '"state": *"voting"'
}
check "the node votes" await votes_here
sed -i 's/^name = solo$/name = other/' /etc/pawl/pawld.conf
refused() { ! /packages/host/install.sh 2>/tmp/refused && grep -q 'is another node' /tmp/refused; }
check "a machine that is another node is left alone" refused
kill -TERM $deployed
wait $deployed
rm -rf /etc/pawl/solo.* /etc/pawl/ca.crt /etc/pawl/rights.conf /run/pawl \
	/etc/systemd/system/pawld.service.d

left() {
	local found
	found=$(find / -xdev \( -path /proc -o -path /packages -o -path /tmp -o -path /var/log \
		-o -path /var/cache \) -prune -o -iname '*pawl*' -print
		getent passwd pawl; getent group pawl)
	[ -z "$found" ] || { echo "$found"; return 1; }
}
check "the packages can be purged" \
	env DEBIAN_FRONTEND=noninteractive dpkg --purge pawl pawld libpawl2
check "and nothing of them is left" left

[ $failed = 0 ] || tail -n 15 /tmp/?.log
echo "passed=$passed failed=$failed skipped=0"
[ $failed = 0 ]
