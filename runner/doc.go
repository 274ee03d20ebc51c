// Package runner hosts crews: it is the composition of settings, servers, tools,
// policy and models that the command line uses, and that another program can use
// the same way (O13).
//
// A [Host] is opened once and closed once. Opening it connects every configured
// MCP server in one explicit step and registers their tools beside the built-ins,
// so that everything done with the host sees one surface (O10):
//
//	settings, err := config.Load(config.Source{Environ: os.Environ()})
//	host, err := runner.Open(ctx, runner.Config{Settings: settings, Environ: os.Environ()})
//	defer host.Close()
//
//	c, issues := crew.Load("crew.yaml")
//	verdict := host.Judge(c, issues, inputs)
//	out, err := host.Run(ctx, c, inputs)
//
// A [Surface] is what MCP clients may use of a host (O22): tools, crews as tools,
// resources and prompts, each only where it is named, behind the host's policy:
//
//	surface, err := host.Surface(ctx, runner.ServeConfig{Served: settings.MCP.Served[0]})
//	err = surface.ServeStdio(ctx, os.Stdin, os.Stdout)
package runner
