// Package telemetry is a run as OpenTelemetry has it: spans of the crew, its agents,
// their models and tools, and metrics of how long these took and how many tokens were
// used. It is off unless the standard OTEL_* variables ask for it, and then costs
// nothing: all methods of a nil [*Telemetry] do nothing, and wrap nothing.
//
//	t, warnings := telemetry.Open(ctx, telemetry.Config{Environ: environ, Version: version, Warn: warn})
//	defer t.Close(ctx)
//	ctx, end := t.Crew(ctx, "Research crew")
//	model = t.Model(model, "openai", "gpt-5")
//	…
//	end(err)
//
// Names follow the conventions for GenAI and MCP of OpenTelemetry, at the one version
// that names.go pins. What models and tools say is content, and in spans only where
// OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT says so, with secrets masked.
//
// Exports speak OTLP over HTTP in JSON, which every collector takes at its port 4318.
// The official exporters would cost 4.8 MB of gRPC and Protobuf in the program; that is
// why neither is spoken. What can't be exported is a warning, never the end of a run.
package telemetry
