package crew

// The codes of this package's issues, beside those of [strict].
const (
	// CodeNotFound: there is nothing at the path.
	CodeNotFound = "not-found"
	// CodeUnreadable: a file is there and cannot be read.
	CodeUnreadable = "unreadable"
	// CodeLayout: the files of a folder are no crew, or two crews at once.
	CodeLayout = "layout"
	// CodeUndefinedAlias: a line "*name" has no text in the anchors block.
	CodeUndefinedAlias = "undefined-alias"
	// CodeNestedAlias: a text of the anchors block uses another.
	CodeNestedAlias = "nested-alias"

	// CodeOutOfRange: a number or the length of a text is out of its bounds.
	CodeOutOfRange = "out-of-range"
	// CodeRemovedKey: a key that once was and is no more.
	CodeRemovedKey = "removed-key"
	// CodeUnsupportedKey: a key of CrewAI's that needs its crew.py.
	CodeUnsupportedKey = "unsupported-key"
	// CodeConflict: two values that do not go together.
	CodeConflict = "conflict"
	// CodeDanglingReference: an id that names no agent or no task.
	CodeDanglingReference = "dangling-reference"
	// CodeDuplicateReference: a list names one thing twice.
	CodeDuplicateReference = "duplicate-reference"
	// CodeDependencyCycle: tasks that wait for each other.
	CodeDependencyCycle = "dependency-cycle"

	// CodeCredential: what is, or would be, a credential.
	CodeCredential = "credential"
	// CodeVariable: a ${VARIABLE}, which crew files have none of.
	CodeVariable = "variable"
	// CodeUnused: an agent's MCP server that no toolset of the agent uses (A2).
	CodeUnused = "unused-server"
	// CodeServer: an agent's MCP server that this host has not got.
	CodeServer = "server"

	// CodeUnknownTool: the host has no tool of that name.
	CodeUnknownTool = "unknown-tool"
	// CodeUnknownProfile: the settings have no model profile of that id.
	CodeUnknownProfile = "unknown-profile"
	// CodeUndefinedVariable: a text uses a variable that has no value (K59).
	CodeUndefinedVariable = "undefined-variable"
	// CodeAmbiguousVariable: two inputs are one variable, such as a-b and a_b.
	CodeAmbiguousVariable = "ambiguous-variable"

	// CodeNoEffect, a warning: what is written changes nothing.
	CodeNoEffect = "no-effect"
	// CodeUnassigned, a warning: tasks of a CrewAI crew that name no agent.
	CodeUnassigned = "unassigned-task"
	// CodeLongName, a warning: the name of a server that models may not see whole.
	CodeLongName = "long-name"
	// CodeUnknownFormat, a warning: the format of a deliverable is not known.
	CodeUnknownFormat = "unknown-format"
)
