// Package people has the tool that asks a person: human_input.
package people

import "crewhost/tools/native"

// Tools returns the tool; a nil asker means that nobody can be asked.
func Tools(asker Asker) []native.Tool { return []native.Tool{humanInput(asker)} }
