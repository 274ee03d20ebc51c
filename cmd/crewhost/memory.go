package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"crewhost/crew"
	"crewhost/runner"
	"crewhost/runner/memory"
)

const limitFlag = "limit"

// memoryCommand is what a person does with what crews remember.
func memoryCommand(c *console) *cli.Command {
	limit := &cli.IntFlag{Name: limitFlag, Usage: "at most `N` entries", Value: 20}
	// command is one that opens the memory of the crew it names; it takes so many
	// words more, or any number where that is below zero.
	command := func(name, usage, args string, more int, flags []cli.Flag, do func(context.Context, *memory.Store, []string, *output, *cli.Context) error) *cli.Command {
		return &cli.Command{
			Name: name, Usage: usage, ArgsUsage: args, Flags: append(settingsFlags(), flags...),
			Action: func(ctx *cli.Context) error { return withMemory(ctx, c, more, do) },
		}
	}
	return &cli.Command{
		Name:  "memory",
		Usage: "look into what crews with memory remember, and have them forget it",
		Subcommands: []*cli.Command{
			command("list", "list the newest entries", "CREW", 0, []cli.Flag{limit, formatFlagOf("text", "json")}, memoryList),
			command("search", "list what is most like a text, by its words", "CREW TEXT", -1, []cli.Flag{limit, formatFlagOf("text", "json")}, memorySearch),
			command("show", "print an entry whole", "CREW ID", 1, []cli.Flag{formatFlagOf("text", "json")}, memoryShow),
			command("forget", "remove entries", "CREW ID…", -1, nil, memoryForget),
			command("clear", "remove all entries", "CREW", 0, nil, memoryClear),
		},
		Action: func(ctx *cli.Context) error {
			if word := ctx.Args().First(); word != "" {
				return unknownCommand(ctx, word, "it knows list, search, show, forget and clear")
			}
			return cli.ShowSubcommandHelp(ctx)
		},
	}
}

// withMemory opens the memory of the crew that the first word names: a file or a
// folder, or the name itself of a crew that is nowhere to be found.
func withMemory(ctx *cli.Context, c *console, more int, do func(context.Context, *memory.Store, []string, *output, *cli.Context) error) (err error) {
	words := ctx.Args().Slice()
	switch {
	case len(words) == 0:
		return usagef("%s: name a crew", ctx.Command.HelpName)
	case more >= 0 && len(words) != 1+more, more < 0 && len(words) < 2:
		return usagef("%s takes %s", ctx.Command.HelpName, ctx.Command.ArgsUsage)
	}
	if n := ctx.Int(limitFlag); ctx.IsSet(limitFlag) && n < 1 {
		return usagef("--limit %d: it takes a number of entries, at least 1", n)
	}
	out := &output{out: c.out, console: c, mask: c.redactor.Redact, show: c.show}
	if ctx.Command.Name == "list" || ctx.Command.Name == "search" || ctx.Command.Name == "show" {
		if out, err = outputOf(ctx, c); err != nil {
			return err
		}
	}
	name, anchor := words[0], ""
	if _, statErr := os.Stat(name); statErr == nil {
		loaded, loadErr := crew.Load(name)
		if loaded == nil || loaded.Name.V == "" {
			return fmt.Errorf("reading the crew's name: %w", loadErr)
		}
		anchor, name = name, loaded.Name.V
	} else if isCrew(name) {
		return usagef("crew not found: %s", name)
	}
	if anchor, err = anchorOf(anchor); err != nil {
		return err
	}
	s, err := newSession(ctx, c, anchor)
	if err != nil {
		return err
	}
	settings := s.settings.Memory
	if settings.Dir == "" {
		return usagef("no folder of memories is known: set memory.dir in the settings")
	}
	path := runner.MemoryPath(settings.Dir, name)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return usagef("the crew %q remembers nothing: there is no %s", name, path)
	}
	store, err := memory.Open(ctx.Context, memory.Config{Path: path, Entries: settings.Entries, Bytes: settings.Bytes})
	if err != nil {
		return fmt.Errorf("opening the memory of crew %q: %w", name, err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return do(ctx.Context, store, words[1:], out, ctx)
}

func memoryList(ctx context.Context, store *memory.Store, _ []string, out *output, flags *cli.Context) error {
	found, err := store.List(ctx, flags.Int(limitFlag))
	if err != nil {
		return err
	}
	return out.memories(found)
}

func memorySearch(ctx context.Context, store *memory.Store, words []string, out *output, flags *cli.Context) error {
	found, err := store.Recall(ctx, memory.Question{Text: strings.Join(words, " "), Top: flags.Int(limitFlag)})
	if err != nil {
		return err
	}
	return out.memories(found)
}

func memoryShow(ctx context.Context, store *memory.Store, words []string, out *output, _ *cli.Context) error {
	ids, err := idsOf(words)
	if err != nil {
		return err
	}
	e, ok, err := store.Entry(ctx, ids[0])
	switch {
	case err != nil:
		return err
	case !ok:
		return usagef("there is no entry %d", ids[0])
	case out.json:
		return out.encode(jsonMemoryOf(e))
	}
	return out.text("%s\n", out.foreign(e.Text))
}

func memoryForget(ctx context.Context, store *memory.Store, words []string, out *output, _ *cli.Context) error {
	ids, err := idsOf(words)
	if err != nil {
		return err
	}
	n, err := store.Forget(ctx, ids...)
	if err != nil {
		return err
	}
	return out.text("Forgot %s.\n", entries(n))
}

func memoryClear(ctx context.Context, store *memory.Store, _ []string, out *output, _ *cli.Context) error {
	n, err := store.Clear(ctx)
	if err != nil {
		return err
	}
	return out.text("Forgot %s.\n", entries(n))
}

func entries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

func idsOf(words []string) ([]int64, error) {
	var ids []int64
	for _, w := range words {
		id, err := strconv.ParseInt(w, 10, 64)
		if err != nil || id < 1 {
			return nil, usagef("%q is no id of an entry; crewhost memory list shows them", w)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// jsonMemory is an entry of a memory.
type jsonMemory struct {
	ID    int64     `json:"id"`
	At    time.Time `json:"at"`
	RunAt time.Time `json:"runAt"`
	Run   string    `json:"run"`
	Task  string    `json:"task,omitempty"`
	Agent string    `json:"agent,omitempty"`
	Key   string    `json:"key,omitempty"` // of a note
	About string    `json:"about,omitempty"`
	Text  string    `json:"text"`
	Score float64   `json:"score,omitempty"` // of a search
}

func jsonMemoryOf(e memory.Entry) jsonMemory {
	return jsonMemory{
		ID: e.ID, At: e.At.UTC(), RunAt: e.RunAt.UTC(), Run: e.Run,
		Task: e.Task, Agent: e.Agent, Key: e.Key, About: e.About, Text: e.Text, Score: e.Score,
	}
}

func (o *output) memories(found []memory.Entry) error {
	if o.json {
		list := []jsonMemory{}
		for _, e := range found {
			list = append(list, jsonMemoryOf(e))
		}
		return o.encode(map[string]any{"memories": list})
	}
	table := tabwriter.NewWriter(o.out, 0, 4, 2, ' ', 0)
	for _, e := range found {
		what := e.Task
		if e.Key != "" {
			what = "note " + e.Key
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\n", e.ID, e.RunAt.UTC().Format("2006-01-02 15:04 UTC"),
			oneLine(what), oneLine(e.Agent), summary(e.Text))
	}
	return table.Flush()
}
