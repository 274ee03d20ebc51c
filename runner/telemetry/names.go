package telemetry

import "go.opentelemetry.io/otel/attribute"

// The table of names. They are those of OpenTelemetry's conventions for GenAI and MCP,
// semantic-conventions-genai v0.1.0, which are in development: with another version,
// this file changes, and no other.

// Attributes.
const (
	attrOperation     = attribute.Key("gen_ai.operation.name")
	attrProvider      = attribute.Key("gen_ai.provider.name")
	attrAgent         = attribute.Key("gen_ai.agent.name")
	attrConversation  = attribute.Key("gen_ai.conversation.id")
	attrRequestModel  = attribute.Key("gen_ai.request.model")
	attrResponseModel = attribute.Key("gen_ai.response.model")
	attrFinish        = attribute.Key("gen_ai.response.finish_reasons")
	attrInputTokens   = attribute.Key("gen_ai.usage.input_tokens")
	attrOutputTokens  = attribute.Key("gen_ai.usage.output_tokens")
	attrTokenType     = attribute.Key("gen_ai.token.type") // input or output
	attrTool          = attribute.Key("gen_ai.tool.name")
	attrToolCall      = attribute.Key("gen_ai.tool.call.id")
	attrErrorType     = attribute.Key("error.type")

	attrMethod    = attribute.Key("mcp.method.name")
	attrProtocol  = attribute.Key("mcp.protocol.version")
	attrRequest   = attribute.Key("jsonrpc.request.id")
	attrCode      = attribute.Key("rpc.response.status_code") // of a JSON-RPC error
	attrTransport = attribute.Key("network.transport")        // pipe or tcp

	attrService        = attribute.Key("service.name")
	attrServiceVersion = attribute.Key("service.version")

	// The host's own, which no convention has.
	attrTask   = attribute.Key("crewhost.task")
	attrServer = attribute.Key("crewhost.mcp.server")

	// Content, which is opt-in.
	attrArguments    = attribute.Key("gen_ai.tool.call.arguments")
	attrResult       = attribute.Key("gen_ai.tool.call.result")
	attrInstructions = attribute.Key("gen_ai.system_instructions")
	attrInput        = attribute.Key("gen_ai.input.messages")
	attrOutput       = attribute.Key("gen_ai.output.messages")
)

// Operations.
const (
	opCrew  = "invoke_workflow"
	opAgent = "invoke_agent"
	opChat  = "chat"
	opTool  = "execute_tool"

	methodCallTool = "tools/call"
)

// Kinds of errors that are no code of their own.
const (
	errorTool     = "tool_error" // a result that says so itself
	errorTimeout  = "timeout"
	errorCanceled = "canceled"
	errorOther    = "_OTHER"
)

// Metrics.
const (
	metricModel         = "gen_ai.client.operation.duration"
	metricTokens        = "gen_ai.client.token.usage"
	metricClient        = "mcp.client.operation.duration"
	metricClientSession = "mcp.client.session.duration"
	metricServer        = "mcp.server.operation.duration"
	metricServerSession = "mcp.server.session.duration"
)

// The bounds of the histograms that the conventions advise.
func boundsOfModels() []float64 {
	return []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
}

func boundsOfTokens() []float64 {
	return []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
}

func boundsOfMCP() []float64 {
	return []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
}

// providerName is what the conventions call a vendor.
func providerName(provider string) string {
	switch provider {
	case "azure", "azure-openai":
		return "azure.ai.openai"
	case "gemini", "google":
		return "gcp.gemini"
	case "mistral":
		return "mistral_ai"
	case "xai":
		return "x_ai"
	}
	return provider
}
