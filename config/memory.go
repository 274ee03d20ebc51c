package config

import (
	"path/filepath"

	"crewhost/config/strict"
)

// Memory is what crews with memory remember, and where that is kept.
type Memory struct {
	// Dir is the folder of the stores and of what is made of documents, absolute;
	// empty where nothing says where a user's state is kept.
	Dir     string
	Entries int   // that one crew remembers; the oldest go
	Bytes   int64 // of their texts
	Recall  int   // entries that one task is reminded of, at most; 0: none
	Chars   int   // of them in one prompt, together
}

// Knowledge bounds the documents of one crew.
type Knowledge struct {
	Files  int
	Bytes  int64 // of all files together
	Chunks int   // pieces that they are cut into
}

// memoryDefaults are those of [Memory] and [Knowledge], as a part of the lowest
// layer.
const memoryDefaults = `
memory: {entries: 10000, bytes: 67108864, recall: 5, chars: 4000}
knowledge: {files: 2000, bytes: 67108864, chunks: 20000}
`

type memoryDocument struct {
	Dir     strict.At[word] `key:"dir"`
	Entries count           `key:"entries"`
	Bytes   count           `key:"bytes"`
	Recall  natural         `key:"recall"`
	Chars   count           `key:"chars"`
}

type knowledgeDocument struct {
	Files  count `key:"files"`
	Bytes  count `key:"bytes"`
	Chunks count `key:"chunks"`
}

func (l *loader) memory(doc memoryDocument) Memory {
	m := Memory{Entries: int(doc.Entries), Bytes: int64(doc.Bytes), Recall: int(doc.Recall), Chars: int(doc.Chars)}
	switch dir := string(doc.Dir.V); {
	case dir != "":
		m.Dir = l.absolute(dir, doc.Dir.Pos)
	case l.source.UserStateDir != "":
		m.Dir = filepath.Join(l.source.UserStateDir, "crewhost", "memory")
	}
	return m
}

func (doc knowledgeDocument) knowledge() Knowledge {
	return Knowledge{Files: int(doc.Files), Bytes: int64(doc.Bytes), Chunks: int(doc.Chunks)}
}
