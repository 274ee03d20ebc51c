// Command notes is the MCP server of package notebook, on stdio.
//
//	go run ./mcp/mcptest/notes
package main

import (
	"context"
	"log"

	"crewhost/mcp/mcptest/notebook"
)

func main() {
	log.SetFlags(0)
	if err := notebook.Run(context.Background()); err != nil {
		log.Fatal("notes: ", err)
	}
}
