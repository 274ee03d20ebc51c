package main

// The codes of what this package finds, beside those of the rooms below.
const (
	codeRequiredServer = "required-server"
	codeServer         = "server"
	codeSettings       = "settings"
	codeIdleRule       = "idle-rule"
)

// meaning says what the issues of a code have in common. A code that is not in the
// table is its own description.
func meaning(code string) string {
	if text, ok := meanings()[code]; ok {
		return text
	}
	return "A problem of the kind " + code + "."
}

// meanings is the table of codes, those of servers that fail included.
func meanings() map[string]string {
	return map[string]string{
		"ambiguous-variable":        "Variables differ in the case of their letters alone.",
		"bad-mount":                 "A mount can't be read, or its folder is not there.",
		"bad-name":                  "The name of a server, a profile or a variable can't be used.",
		"bad-rule":                  "A permission rule can't be read.",
		"bad-server":                "The keys of an MCP server contradict each other.",
		"bad-value":                 "A value is not one of those that its key takes.",
		"capability":                "The provider can't do what the crew asks of its model.",
		"collision":                 "Two things have one name.",
		"conflict":                  "Two keys, or two files, contradict each other.",
		"credential":                "A crew writes a credential down, which is the host's affair.",
		"dangling-reference":        "Something refers to what is not there.",
		"deliverable":               "A task's file can't be left where the crew says.",
		"dependency-cycle":          "Tasks depend on one another in a circle.",
		"duplicate-key":             "A key stands twice in a map.",
		"duplicate-reference":       "The same thing is referred to twice.",
		"idle-rule":                 "A permission rule fits no tool that is there.",
		"knowledge":                 "A source or a collection of documents is not there.",
		"layout":                    "Files do not lie as a crew's do.",
		"load":                      "The crew's files could not be read.",
		"lock-conflict":             "The lock file holds a conflict of a merge.",
		"lock-digest":               "A digest in the lock file is none.",
		"lock-missing":              "There is no lock file.",
		"lock-server-added":         "An MCP server is not locked.",
		"lock-server-changed":       "An MCP server calls itself otherwise than it is locked, or tells models something else.",
		"lock-server-down":          "An MCP server could not be held against the lock file.",
		"lock-server-moved":         "An MCP server is reached in another way than it is locked.",
		"lock-server-removed":       "An MCP server is locked and not there any more.",
		"lock-tool-added":           "A tool of an MCP server is not locked.",
		"lock-tool-changed":         "A tool of an MCP server is not as it is locked.",
		"lock-tool-removed":         "A tool is locked and not there any more.",
		"lock-version":              "The lock file is of another version.",
		"long-name":                 "A name is longer than can be used.",
		"mcp_connect_timeout":       "An MCP server was not connected in time.",
		"mcp_forbidden":             "The credentials for an MCP server don't allow this.",
		"mcp_initialization_failed": "An MCP server did not come up.",
		"mcp_list_timeout":          "An MCP server did not list what it has in time.",
		"mcp_method_not_found":      "An MCP server does not know a method.",
		"mcp_ping_timeout":          "An MCP server gave no sign of life.",
		"mcp_protocol_error":        "An MCP server does not keep to the protocol.",
		"mcp_result_too_large":      "An MCP server's result is too large.",
		"mcp_transport_closed":      "The connection with an MCP server is closed.",
		"mcp_transport_failed":      "The connection with an MCP server failed.",
		"mcp_unauthorized":          "An MCP server wants credentials, or refuses those it got.",
		"memory":                    "The crew's memory can't be had as it asks.",
		"missing":                   "A value is missing.",
		"nested-alias":              "An alias stands within the value of another.",
		"no-effect":                 "A key has no effect.",
		"no-mount":                  "The crew requires a mount that is not there.",
		"not-found":                 "A file or a folder is not there.",
		"not-served":                "A tool makes no sense for a client.",
		"operation_cancelled":       "Something was cancelled.",
		"out-of-range":              "A number is too small or too large.",
		"refused":                   "The policy denies each call of a tool that an agent has.",
		"removed-key":               "A key was removed from the format.",
		"required-server":           "An MCP server that the settings require could not be connected.",
		"schema":                    "A JSON Schema can't be used.",
		"server":                    "An MCP server did what a host should know of.",
		"settings":                  "The settings say what a person should know of.",
		"settings-file":             "A file of the settings is missing, empty, or one of two.",
		"syntax":                    "A file can't be parsed.",
		"tape":                      "A tape is not there, or is none.",
		"too-large":                 "Something is larger than is read.",
		"tool_arguments_invalid":    "The arguments of a call are no object, or too large.",
		"tool_call_timeout":         "A tool did not answer in time.",
		"tool_not_found":            "There is no tool of that name.",
		"tool_skipped":              "A tool of an MCP server was not registered.",
		"unanswered":                "The policy asks about calls, and nobody can be asked.",
		"unassigned-task":           "No agent does a task.",
		"undefined-alias":           "An alias refers to no anchor.",
		"undefined-variable":        "A variable has no value.",
		"unknown-format":            "A crew is in no format that is known.",
		"unknown-key":               "A key is not known.",
		"unknown-model":             "The profile does not offer the model.",
		"unknown-profile":           "There is no model profile of that name.",
		"unknown-tool":              "There is no tool of that name.",
		"unpriced":                  "A budget can't be kept, for want of a price.",
		"unreadable":                "A file can't be read.",
		"unsupported":               "The crew asks for what this version does not do.",
		"unsupported-key":           "A key means something elsewhere, and nothing here.",
		"unused":                    "A variable is given and not used.",
		"unused-server":             "An agent brings an MCP server along that no toolset of it names.",
		"variable":                  "A variable of the settings has no value, or can't be read.",
		"vendor":                    "The crew names another vendor than the settings use.",
		"wrong-type":                "A value is of another type than its key takes.",
	}
}
