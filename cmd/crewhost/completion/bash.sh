# bash completion for crewhost; source it, or save it where bash looks:
#   crewhost completion bash > /etc/bash_completion.d/crewhost
_crewhost() {
	local word="${COMP_WORDS[COMP_CWORD]}" words
	if [[ "$word" == -* ]]; then
		words=$("${COMP_WORDS[@]:0:COMP_CWORD}" "$word" --generate-bash-completion 2>/dev/null)
	else
		words=$("${COMP_WORDS[@]:0:COMP_CWORD}" --generate-bash-completion 2>/dev/null)
	fi
	COMPREPLY=($(compgen -W "$words" -- "$word") $(compgen -f -- "$word"))
}
complete -o filenames -F _crewhost crewhost
