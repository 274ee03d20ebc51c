package provider

import (
	"crewhost/runner/llm"
	"crewhost/runner/llm/anthropic"
	"crewhost/runner/llm/ollama"
	"crewhost/runner/llm/openai"
)

// OpenAICompatible is the provider of every endpoint that is in no other row.
const OpenAICompatible = "openai-compatible"

// table returns the rows. What a row says of an API is what its documentation
// says; models that take less are found out by their refusals, see [llm.Fitted].
//
// Gemini is spoken to by Google's OpenAI-compatible endpoint. Google's own module
// would add about 8 MB for thought signatures, budgets and schemas, all of which
// this endpoint has too.
func table() []Provider {
	// Most vendors' APIs are OpenAI's: efforts up to high, prompts cached unasked.
	usual := llm.Capabilities{Thinking: llm.ThinkEffort, TopEffort: "high", Cache: llm.CacheAutomatic}
	with := func(change func(*llm.Capabilities)) llm.Capabilities {
		c := usual
		change(&c)
		return c
	}
	strict := with(func(c *llm.Capabilities) { c.StrictSubset, c.JSONWord = true, true })
	objects := with(func(c *llm.Capabilities) {
		c.Thinking, c.TopEffort, c.Formats, c.JSONWord = llm.ThinkSwitch, "", llm.FormatObject, true
	})
	unthinking := with(func(c *llm.Capabilities) { c.Thinking, c.TopEffort = llm.ThinkNone, "" })

	return []Provider{
		{
			// Its tokens field follows the host, since this name has always been
			// that of compatible servers too.
			Name: "openai", BaseURL: openai.DefaultBaseURL, KeyVariable: "OPENAI_API_KEY", Embeddings: true,
			Capabilities: strict, batch: 2048,
		},
		{
			Name: "anthropic", BaseURL: anthropic.DefaultBaseURL, KeyVariable: "ANTHROPIC_API_KEY", anthropic: true,
			Capabilities: llm.Capabilities{ThinkingAlone: true},
		},
		{
			Name: "gemini", BaseURL: "https://generativelanguage.googleapis.com/v1beta/openai", KeyVariable: "GEMINI_API_KEY", Embeddings: true,
			Capabilities: with(func(c *llm.Capabilities) { c.Thinking, c.FormatAlone = llm.ThinkAny, true }),
			tokens:       openai.MaxTokens, thinking: openai.Gemini, plainSchemas: true, batch: 100,
		},
		{
			Name: "azure", Aliases: []string{"azure-openai"}, KeyVariable: "AZURE_OPENAI_API_KEY", Embeddings: true, azure: true,
			Capabilities: strict, tokens: openai.MaxCompletionTokens, batch: 2048,
		},
		{
			Name: "ollama", BaseURL: ollama.DefaultBaseURL, Embeddings: true, ollama: true,
			Capabilities: usual,
		},
		{
			Name: "openrouter", BaseURL: "https://openrouter.ai/api/v1", KeyVariable: "OPENROUTER_API_KEY", Embeddings: true,
			Capabilities: with(func(c *llm.Capabilities) { c.Thinking, c.StrictSubset = llm.ThinkAny, true }),
			tokens:       openai.MaxTokens, thinking: openai.Reasoning, billed: "USD",
		},
		{
			Name: "mistral", BaseURL: "https://api.mistral.ai/v1", KeyVariable: "MISTRAL_API_KEY", Embeddings: true,
			Capabilities: unthinking, tokens: openai.MaxTokens, noStreamOptions: true,
		},
		{
			Name: "deepseek", BaseURL: "https://api.deepseek.com/v1", KeyVariable: "DEEPSEEK_API_KEY",
			Capabilities: objects, tokens: openai.MaxTokens, thinking: openai.TypedThinking, reasoningBack: true,
		},
		{
			Name: "groq", BaseURL: "https://api.groq.com/openai/v1", KeyVariable: "GROQ_API_KEY",
			Capabilities: with(func(c *llm.Capabilities) { c.StrictSubset, c.JSONWord, c.FormatAlone = true, true, true }),
			tokens:       openai.MaxCompletionTokens,
		},
		{
			Name: "together", BaseURL: "https://api.together.xyz/v1", KeyVariable: "TOGETHER_API_KEY", Embeddings: true,
			Capabilities: usual, tokens: openai.MaxTokens,
		},
		{
			Name: "xai", Aliases: []string{"grok"}, BaseURL: "https://api.x.ai/v1", KeyVariable: "XAI_API_KEY",
			Capabilities: usual, tokens: openai.MaxTokens,
		},
		{
			Name: "fireworks", BaseURL: "https://api.fireworks.ai/inference/v1", KeyVariable: "FIREWORKS_API_KEY", Embeddings: true,
			Capabilities: usual, tokens: openai.MaxTokens,
		},
		{
			Name: "cerebras", BaseURL: "https://api.cerebras.ai/v1", KeyVariable: "CEREBRAS_API_KEY",
			Capabilities: strict, tokens: openai.MaxCompletionTokens,
		},
		{
			Name: "moonshot", Aliases: []string{"kimi"}, BaseURL: "https://api.moonshot.ai/v1", KeyVariable: "MOONSHOT_API_KEY",
			Capabilities: objects, tokens: openai.MaxTokens, thinking: openai.TypedThinking, reasoningBack: true,
		},
		{
			Name: "qwen", BaseURL: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", KeyVariable: "DASHSCOPE_API_KEY", Embeddings: true,
			Capabilities: with(func(c *llm.Capabilities) {
				c.Thinking, c.TopEffort, c.Formats, c.JSONWord = llm.ThinkBudget, "", llm.FormatObject, true
			}),
			tokens: openai.MaxTokens, thinking: openai.EnableThinking, batch: 10,
		},
		{
			Name: "zai", BaseURL: "https://api.z.ai/api/paas/v4", KeyVariable: "ZAI_API_KEY", Embeddings: true,
			Capabilities: objects, tokens: openai.MaxTokens, thinking: openai.TypedThinking, batch: 64,
		},
		{
			Name: "minimax", BaseURL: "https://api.minimax.io/v1", KeyVariable: "MINIMAX_API_KEY",
			Capabilities: with(func(c *llm.Capabilities) { c.Thinking, c.TopEffort, c.Formats = llm.ThinkNone, "", llm.FormatNone }),
			tokens:       openai.MaxTokens,
		},
		{
			Name: "huggingface", BaseURL: "https://router.huggingface.co/v1", KeyVariable: "HF_TOKEN",
			Capabilities: usual, tokens: openai.MaxTokens,
		},
		{
			Name: "docker-model-runner", BaseURL: "http://127.0.0.1:12434/engines/llama.cpp/v1", Embeddings: true,
			Capabilities: unthinking, tokens: openai.MaxTokens,
		},
		{
			Name: "lmstudio", BaseURL: "http://127.0.0.1:1234/v1", Embeddings: true,
			Capabilities: usual, tokens: openai.MaxTokens,
		},
		{
			Name: "vllm", BaseURL: "http://127.0.0.1:8000/v1", Embeddings: true,
			Capabilities: with(func(c *llm.Capabilities) { c.Thinking, c.TopEffort = llm.ThinkSwitch, "" }),
			tokens:       openai.MaxTokens, thinking: openai.TemplateSwitch,
		},
		{
			Name: OpenAICompatible, Embeddings: true,
			Capabilities: usual, tokens: openai.MaxTokens,
		},
	}
}
