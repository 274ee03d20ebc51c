package documents_test

import (
	"encoding/json"

	"crewhost/tools"
)

func call(arguments string) tools.Call { return tools.Call{Arguments: json.RawMessage(arguments)} }
