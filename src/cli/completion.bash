# bash completion for pawl

_pawl_options() {
	case $1 in
	run)
		echo "--lease --wait --value --owner --grace --shared --permits --of --priority" \
			"--lock-delay --release-on-disconnect --label --on-ask" ;;
	acquire)
		echo "--lease --wait --value --owner --lock-id --shared --permits --of --priority" \
			"--lock-delay --label" ;;
	extend) echo "--lease --token --slots" ;;
	update) echo "--expect --expect-seq" ;;
	get) echo "--quorum" ;;
	ls) echo "--limit --after --waiting" ;;
	wait) echo "--for --timeout" ;;
	break) echo "--token --now --yes" ;;
	elect)
		echo "--value --as --priority --takeover --once --lease --lock-delay" \
			"--release-on-disconnect --label --grace" ;;
	leader) echo "--watch" ;;
	watch) echo "--exact --from --count" ;;
	explain) echo "--owner" ;;
	ask-release) echo "--to --priority --owner" ;;
	fence) echo "--shared" ;;
	status) echo "--all --watch --interval --check" ;;
	clients) echo "--shares" ;;
	top) echo "--count --prefix" ;;
	cluster)
		echo "--anyway --wait --masters --replicas --max-lease --request-timeout" \
			"--promise-timeout --clock-drift --yes --dry-run" ;;
	can) echo "--prefix --priority --file" ;;
	cert) echo "--host --role --dir --ca --ca-key --crl --list --days --type --name --force" ;;
	bench)
		echo "--outstanding --duration --count --connections --batch --leases --lease" \
			"--hold --value --prefix" ;;
	esac
}

# The command of the line, and with it where the command of pawl run begins.
_pawl_scan() {
	local i word
	command='' after=0
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case $word in
		--) after=$((i + 1)) && return ;;
		--endpoints | --cacert | --cert | --key | --server-name | --timeout) ((i++)) ;;
		-*) ;;
		*) [[ $command ]] || command=$word ;;
		esac
	done
}

_pawl() {
	local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command after
	local common="--endpoints --prefer-first --cacert --cert --key --server-name --timeout"
	common+=" --json --help"
	local commands="run elect leader acquire extend update release downgrade transfer"
	commands+=" ask-release get ls wait waiters watch explain break fence status top clients"
	commands+=" can cluster drain cert bench help"
	COMPREPLY=()
	_pawl_scan
	if ((after)); then
		if ((COMP_CWORD == after)); then
			mapfile -t COMPREPLY < <(compgen -c -- "$current")
		else
			mapfile -t COMPREPLY < <(compgen -f -- "$current")
		fi
		return
	fi
	case $before in
	--cacert | --cert | --key | --ca | --ca-key | --crl | --list | --file)
		mapfile -t COMPREPLY < <(compgen -f -- "$current") && return ;;
	--dir) mapfile -t COMPREPLY < <(compgen -d -- "$current") && return ;;
	--for) mapfile -t COMPREPLY < <(compgen -W "held free" -- "$current") && return ;;
	--on-ask) mapfile -t COMPREPLY < <(compgen -W "ignore term" -- "$current") && return ;;
	--role)
		mapfile -t COMPREPLY < <(compgen -W "master replica embedded" -- "$current") &&
			return ;;
	--type) mapfile -t COMPREPLY < <(compgen -W "ec ed25519" -- "$current") && return ;;
	esac
	if [[ ! $command ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$commands $common --version" -- "$current")
	elif [[ $current == -* ]]; then
		mapfile -t COMPREPLY < <(
			compgen -W "$(_pawl_options "$command") $common" -- "$current"
		)
	elif [[ $command == cert ]]; then
		mapfile -t COMPREPLY < <(compgen -W "ca node client show revoke" -- "$current") &&
			((${#COMPREPLY[@]})) ||
			mapfile -t COMPREPLY < <(compgen -f -- "$current")
	elif [[ $command == fence ]]; then
		mapfile -t COMPREPLY < <(compgen -W "check show" -- "$current") &&
			((${#COMPREPLY[@]})) ||
			mapfile -t COMPREPLY < <(compgen -f -- "$current")
	elif [[ $command == cluster ]]; then
		local verbs="show add-replica promote demote remove replace set-nodes"
		verbs+=" set-timing force"
		mapfile -t COMPREPLY < <(compgen -W "$verbs" -- "$current")
	elif [[ $command == clients ]]; then
		mapfile -t COMPREPLY < <(compgen -W "kick --shares" -- "$current")
	elif [[ $command == bench ]]; then
		mapfile -t COMPREPLY < <(compgen -W "cycle handoff extend gap fill" -- "$current")
	elif [[ $command == help ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$current")
	fi
}

complete -F _pawl pawl
