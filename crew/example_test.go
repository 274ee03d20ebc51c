package crew_test

import (
	"fmt"

	"crewhost/crew"
)

// surface is what a host offers.
type surface struct{}

func (surface) Tools() []string       { return []string{"file_read", "web_search"} }
func (surface) Profiles() []string    { return nil }
func (surface) Missing(string) string { return "" }
func (surface) Off(string) string     { return "" }

func (surface) Offers(*crew.Server) (offers []crew.Offer, why string) { return nil, "" }

func Example() {
	c, err := crew.Load("testdata/good/single.yaml")
	if err != nil {
		fmt.Println(err) // crew.Issues: a line each
	}
	fmt.Println(c.Name.V, len(c.Agents), len(c.Tasks), c.ToolNames())
	fmt.Println(c.Validate(surface{}, crew.Inputs{"harbor": "Brest"})[0])
	fmt.Println(c.Expand(crew.Inputs{"harbour": "Brest"}).Tasks[0].Description.V)
	// Output:
	// tide-tables 2 2 [file_read]
	// testdata/good/single.yaml:8:11: agents.reader.goal: the variable {harbour} has no value (did you mean {harbor}? \{harbour} is the text itself) [undefined-variable]
	// Read the gauges of Brest.
}
