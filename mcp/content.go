package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"crewhost/tools"
)

const (
	maxBlocks  = 10_000   // blocks of a result
	maxUnknown = 64 << 10 // bytes of a block of unknown type that are kept
)

// parseResult reads the result of tools/call, digit for digit (K31). What the
// server left out or wrote otherwise than it should is taken as well as it can
// be: content that is missing, null or a single block, and blocks of a type that is
// not known here, which are kept as they are (W10).
func parseResult(name string, raw json.RawMessage) (tools.Result, error) {
	var r struct {
		Content           json.RawMessage `json:"content"`
		StructuredContent json.RawMessage `json:"structuredContent"`
		IsError           json.RawMessage `json:"isError"`
	}
	if err := json.Unmarshal(raw, &r); err != nil || !isObject(bytes.TrimSpace(raw)) {
		return tools.Result{}, errors.New("its result is not an object")
	}
	res := tools.Result{IsError: string(r.IsError) == "true"}
	if len(r.StructuredContent) > 0 && string(r.StructuredContent) != "null" {
		res.Structured = r.StructuredContent
	}
	blocks := []json.RawMessage{r.Content}
	switch {
	case len(r.Content) == 0 || string(r.Content) == "null":
		blocks = nil
	case r.Content[0] == '[':
		if err := json.Unmarshal(r.Content, &blocks); err != nil {
			return tools.Result{}, errors.New("its content is not a list of blocks")
		}
	}
	if len(blocks) > maxBlocks {
		return tools.Result{}, fmt.Errorf("its result has %d blocks of content; at most %d are taken", len(blocks), maxBlocks)
	}
	for _, block := range blocks {
		res.Content = append(res.Content, parseBlock(block))
	}
	switch {
	case res.IsError && !worded(res.Content):
		// A model must be able to tell that it failed (K33).
		res.Content = append(res.Content, tools.Content{
			Kind: tools.KindText, Text: fmt.Sprintf("The tool %q failed and gave no reason.", name),
		})
	case len(res.Content) == 0 && res.Structured != nil:
		// The content is what a model reads.
		res.Content = []tools.Content{{Kind: tools.KindText, Text: string(res.Structured)}}
	}
	return res, nil
}

// worded reports whether there is a text to read.
func worded(content []tools.Content) bool {
	for _, c := range content {
		if strings.TrimSpace(c.Text) != "" {
			return true
		}
	}
	return false
}

// parseBlock reads one block of content.
func parseBlock(raw json.RawMessage) tools.Content {
	var b struct {
		Type     string  `json:"type"`
		Text     *string `json:"text"`
		Data     *[]byte `json:"data"`
		MIMEType string  `json:"mimeType"`
		URI      string  `json:"uri"`
		Name     string  `json:"name"`
		Resource *struct {
			URI      string `json:"uri"`
			MIMEType string `json:"mimeType"`
			Text     string `json:"text"`
			Blob     []byte `json:"blob"`
		} `json:"resource"`
	}
	if json.Unmarshal(raw, &b) != nil {
		return unknown(raw)
	}
	switch {
	case b.Type == "text" && b.Text != nil:
		return tools.Content{Kind: tools.KindText, Text: *b.Text}
	case b.Type == "image" && b.Data != nil:
		return tools.Content{Kind: tools.KindImage, Data: *b.Data, MIME: b.MIMEType}
	case b.Type == "audio" && b.Data != nil:
		return tools.Content{Kind: tools.KindAudio, Data: *b.Data, MIME: b.MIMEType}
	case b.Type == "resource" && b.Resource != nil:
		r := b.Resource
		return tools.Content{Kind: tools.KindResource, URI: r.URI, MIME: r.MIMEType, Text: r.Text, Data: r.Blob}
	case b.Type == "resource_link" && b.URI != "":
		return tools.Content{Kind: tools.KindLink, URI: b.URI, Name: b.Name, MIME: b.MIMEType}
	}
	return unknown(raw)
}

// unknown keeps a block that can't be read otherwise, or says how large it was:
// JSON that is cut is none.
func unknown(raw json.RawMessage) tools.Content {
	c := tools.Content{Kind: tools.KindUnknown, Raw: raw}
	if len(raw) > maxUnknown {
		c.Raw = nil
		c.Text = fmt.Sprintf("(a block of unknown type with %d bytes was left out)", len(raw))
	}
	return c
}
