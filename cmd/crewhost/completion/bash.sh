# bash completion for crewhost; source it, or save it where bash looks:
#   crewhost completion bash > /etc/bash_completion.d/crewhost
_crewhost() {
	local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words="" asked=("${COMP_WORDS[@]:0:COMP_CWORD}")
	local IFS=$'\n'
	COMPREPLY=()
	case "$before" in
	--approve) words=$'ask\nallow\ndeny' ;;
	--format) words=$'text\njson' ;;
	--provider) words=$'openai\nanthropic\nollama\necho' ;;
	completion) words=$'bash\nzsh\nfish' ;;
	*)
		if [[ "$word" == -* ]]; then
			# Two dashes alone would end the flags.
			[[ "$word" == -- ]] && asked+=("-") || asked+=("$word")
		fi
		words=$("${asked[@]}" --generate-bash-completion 2>/dev/null)
		if [[ "$word" != -* ]]; then
			compopt -o filenames 2>/dev/null
			COMPREPLY=($(compgen -f -- "$word"))
		fi
		;;
	esac
	COMPREPLY+=($(compgen -W "$words" -- "$word"))
}
complete -F _crewhost crewhost
