package openai

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"

	openai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"

	"crewhost/runner/llm"
)

// Bounds of one request of an [Embedder].
const (
	DefaultBatch  = 96      // texts, which the servers that are known all take
	maxBatchBytes = 256_000 // of texts; OpenAI takes 300,000 tokens, and a token has a byte or more
)

// Embedder turns texts into vectors by the API's endpoint /embeddings. It is
// safe for concurrent use.
type Embedder struct {
	embeddings openai.EmbeddingService
	exchange   llm.Exchange
	model      string
	batch      int
	dimensions int
}

// NewEmbedder returns the embedder that c describes. Nothing is sent yet.
func NewEmbedder(c Config) (*Embedder, error) {
	options, _, err := c.options()
	if err != nil {
		return nil, err
	}
	return &Embedder{
		embeddings: openai.NewEmbeddingService(options...),
		exchange:   c.exchange(),
		model:      c.Model,
		batch:      cmp.Or(max(c.Batch, 0), DefaultBatch),
		dimensions: c.Dimensions,
	}, nil
}

// Embed implements [llm.Embedder]. An answer with too few vectors, with vectors of
// different lengths or another than was asked for, or with a number that is none
// is an [*llm.APIError]. What the vendor sends in no order is put in order.
func (e *Embedder) Embed(ctx context.Context, model string, texts []string) ([][]float32, llm.Usage, error) {
	model = cmp.Or(model, e.model)
	if model == "" {
		return nil, llm.Usage{}, fmt.Errorf("%s: no model is named", e.exchange.Provider)
	}
	for i, text := range texts {
		if strings.TrimSpace(text) == "" {
			return nil, llm.Usage{}, fmt.Errorf("%s: text %d of %d is blank, and has no embedding", e.exchange.Provider, i+1, len(texts))
		}
	}
	var (
		vectors [][]float32
		usage   llm.Usage
	)
	for batch := range batches(texts, e.batch) {
		got, used, err := e.request(ctx, model, batch)
		if err != nil {
			return nil, usage, err
		}
		vectors = append(vectors, got...)
		if len(got[0]) != len(vectors[0]) {
			return nil, usage, malformed(fmt.Sprintf("the vectors are of %d and of %d numbers", len(vectors[0]), len(got[0])), nil)
		}
		usage = usage.Add(used)
	}
	return vectors, usage, nil
}

// batches yields texts in pieces of at most n texts and maxBatchBytes, or of one
// text that is longer.
func batches(texts []string, n int) func(func([]string) bool) {
	return func(yield func([]string) bool) {
		for len(texts) > 0 {
			size, bytes := 0, 0
			for size < min(n, len(texts)) && (size == 0 || bytes+len(texts[size]) <= maxBatchBytes) {
				bytes += len(texts[size])
				size++
			}
			if !yield(texts[:size]) {
				return
			}
			texts = texts[size:]
		}
	}
}

// request embeds one batch.
func (e *Embedder) request(ctx context.Context, model string, texts []string) ([][]float32, llm.Usage, error) {
	p := openai.EmbeddingNewParams{
		Model: model,
		Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: texts},
	}
	if e.dimensions > 0 {
		p.Dimensions = param.NewOpt(int64(e.dimensions))
	}
	var vectors [][]float32
	res, err := e.exchange.Do(ctx, nil, func(ctx context.Context, a *llm.Attempt) (*llm.Response, error) {
		var raw *http.Response
		if _, err := e.embeddings.New(ctx, p, option.WithMiddleware(a.Middleware), option.WithResponseBodyInto(&raw)); err != nil {
			return nil, err
		}
		defer raw.Body.Close()
		body, err := io.ReadAll(raw.Body)
		if err != nil {
			return nil, fmt.Errorf("reading the answer: %w", err)
		}
		var used llm.Usage
		vectors, used, err = readVectors(body, len(texts), e.dimensions)
		return &llm.Response{Usage: used}, err
	})
	if err != nil {
		return nil, llm.Usage{}, err
	}
	return vectors, res.Usage, nil
}

// readVectors reads the answer to a request for n vectors.
func readVectors(body []byte, n, dimensions int) ([][]float32, llm.Usage, error) {
	var answer struct {
		Data []struct {
			Index     *int            `json:"index"`
			Embedding json.RawMessage `json:"embedding"`
		} `json:"data"`
		Usage json.RawMessage `json:"usage"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, llm.Usage{}, malformed("the answer is not the JSON of embeddings", err)
	}
	if fault := inBand(answer.Error); fault != nil {
		return nil, llm.Usage{}, fault
	}
	if len(answer.Data) != n {
		return nil, llm.Usage{}, malformed(fmt.Sprintf("%d texts were sent, and %d vectors came", n, len(answer.Data)), nil)
	}
	vectors := make([][]float32, n)
	for i, d := range answer.Data {
		if d.Index != nil {
			i = *d.Index
		}
		if i < 0 || i >= n || vectors[i] != nil {
			return nil, llm.Usage{}, malformed("the vectors have no order", nil)
		}
		v, ok := vectorOf(d.Embedding)
		switch {
		case !ok || len(v) == 0:
			return nil, llm.Usage{}, malformed(fmt.Sprintf("vector %d of %d is none", i+1, n), nil)
		case dimensions > 0 && len(v) != dimensions:
			return nil, llm.Usage{}, malformed(fmt.Sprintf("the vectors are of %d numbers, and %d were asked for", len(v), dimensions), nil)
		}
		vectors[i] = v
	}
	for _, v := range vectors {
		if len(v) != len(vectors[0]) {
			return nil, llm.Usage{}, malformed(fmt.Sprintf("the vectors are of %d and of %d numbers", len(vectors[0]), len(v)), nil)
		}
	}
	return vectors, tokens(answer.Usage), nil
}

// vectorOf reads a vector: a list of numbers, or the base64 of 32-bit ones, the
// lowest byte first. A number that is infinite or none makes it no vector.
func vectorOf(raw json.RawMessage) ([]float32, bool) {
	var v []float32
	if json.Unmarshal(raw, &v) == nil {
		return v, true
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return nil, false
	}
	bytes, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(bytes)%4 != 0 {
		return nil, false
	}
	v = make([]float32, len(bytes)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(bytes[4*i:]))
	}
	return v, !slices.ContainsFunc(v, func(f float32) bool {
		return math.IsNaN(float64(f)) || math.IsInf(float64(f), 0)
	})
}
