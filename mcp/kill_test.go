package mcp_test

func victimHost(string) int { return 0 }
