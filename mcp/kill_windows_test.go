package mcp_test

// victimHost is not needed where the system ends the children of a host.
func victimHost(string) int { return 1 }
