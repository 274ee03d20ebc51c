package database

import (
	"context"
	"fmt"

	"crewhost/tools"
	"crewhost/tools/native"
)

func schemaTool(cfg Config) native.Tool {
	return native.Tool{
		Name: "database_schema", Title: "Describe a database",
		Description: "Tells which tables and views a database of SQLite, PostgreSQL or MySQL has: their columns with types and defaults, keys, indexes, " +
			"comments, and about how many rows there are. It changes nothing." + cfg.about(),
		Schema: fmt.Sprintf(`{"type": "object", "properties": {%s
		"schema_scope": {"type": "string", "maxLength": 200, "description": "full (all about the tables), tables (their names alone), or the name of one schema, as \"public\"; of MySQL, of one database.", "default": "full"},
		"table_filter": {"type": "string", "maxLength": 200, "description": "Only the tables whose name is like this: * and %% stand for any characters, ? for one, as \"order*\"."}
	}, "additionalProperties": false}`, cfg.places()),
		Effect: native.ReadOnly, Open: cfg.open(), Timeout: cfg.Timeout,
		Run: func(ctx context.Context, _ tools.Call, args *native.Arguments) (tools.Result, error) {
			connection, connString, provider := args.Text("connection", ""), args.Text("connection_string", ""), args.Text("provider_name", "")
			scope, filter := args.Text("schema_scope", "full"), args.Text("table_filter", "")
			args.Within("schema_scope", scope, 200)
			args.Within("table_filter", filter, 200)
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			wanted, err := matches(filter)
			if err != nil {
				return native.Failuref("The database was not looked at: %v.", err), nil
			}
			of, err := cfg.target(connection, connString, provider)
			if err != nil {
				return native.Failuref("The database was not looked at: %v.", err), nil
			}
			brief := false
			switch scope {
			case "full", "all", "":
				scope = ""
			case "tables", "names":
				scope, brief = "", true
			}
			s, err := of.open(ctx)
			var c catalog
			if err == nil {
				defer s.close()
				c, err = s.catalog(ctx, scope, wanted)
			}
			switch {
			case err == nil:
				return tools.Text(c.text(of, brief)), nil
			case ctx.Err() != nil:
				return tools.Result{}, native.Ended(ctx, "database_schema")
			}
			return native.Failuref("%s could not be described: %s.", of.name, clean(explain(s, err, query{}))), nil
		},
	}
}
