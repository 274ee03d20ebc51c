package main

import (
	"fmt"

	"crewhost/runner"
)

// spent says what a run used, for the line that ends it.
func spent(result *runner.Output) string {
	text := "tokens not measured"
	if u := result.Usage; u.Measured {
		text = fmt.Sprintf("%d tokens (%d in, %d out)", u.Input+u.Output, u.Input, u.Output)
	}
	switch c := result.Cost; {
	case !c.Priced:
	case c.Complete:
		text += fmt.Sprintf(", %s %s", c.Currency, c.Amount)
	default:
		text += fmt.Sprintf(", at least %s %s (not all of it is known)", c.Currency, c.Amount)
	}
	return text
}

// jsonCost is what a run cost. The amount is a text, since a number would be read
// as one that is only nearly it.
type jsonCost struct {
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
	Complete bool   `json:"complete"`
}

// costOf is nil where nothing of the cost is known.
func costOf(c runner.Cost) *jsonCost {
	if !c.Priced {
		return nil
	}
	return &jsonCost{c.Amount.String(), c.Currency, c.Complete}
}
