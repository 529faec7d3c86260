# bash completion for pawl, a template: src/cli/pages fills it from the help of pawl.

_pawl_options() {
	case $1 in
@OPTIONS@
	esac
}

_pawl_words() {
	case $1 in
@WORDS@
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
		@VALUED@) ((i++)) ;;
		-*) ;;
		*) [[ $command ]] || command=$word ;;
		esac
	done
}

_pawl() {
	local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command after
	local common='@COMMON@' commands='@COMMANDS@ help'
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
@VALUES@
	esac
	if [[ ! $command ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$commands $common" -- "$current")
	elif [[ $current == -* ]]; then
		mapfile -t COMPREPLY < <(
			compgen -W "$(_pawl_options "$command") $common" -- "$current"
		)
	elif [[ $(_pawl_words "$command") ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_pawl_words "$command")" -- "$current") &&
			((${#COMPREPLY[@]})) ||
			mapfile -t COMPREPLY < <(compgen -f -- "$current")
	elif [[ $command == help ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$current")
	fi
}

complete -F _pawl pawl
