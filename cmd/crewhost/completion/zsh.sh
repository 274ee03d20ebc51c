#compdef crewhost
# zsh completion for crewhost; save it as _crewhost in a folder of $fpath.
_crewhost() {
	local -a words_before options
	local word="${words[CURRENT]}"
	words_before=("${(@)words[1,CURRENT-1]}")
	if [[ "$word" == -* ]]; then
		options=("${(@f)$("${words_before[@]}" "$word" --generate-bash-completion 2>/dev/null)}")
	else
		options=("${(@f)$("${words_before[@]}" --generate-bash-completion 2>/dev/null)}")
	fi
	compadd -- "${options[@]%%:*}"
	_files
}
_crewhost "$@"
