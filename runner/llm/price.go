package llm

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
)

// Amount is a sum of money in trillionths of its currency, so that the price of a
// single token is a whole number of them, and no sum is ever rounded. It stops
// at the greatest, some nine million of the currency, and does not overflow.
type Amount int64

// unitsPerMillionth of an Amount.
const unitsPerMillionth = 1_000_000

// Millionths returns the amount of n millionths.
func Millionths(n int64) Amount { return amount(n, unitsPerMillionth) }

// Add returns the sum of two amounts that are not below zero.
func (a Amount) Add(b Amount) Amount {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// String returns the amount with six digits behind the point. Only here is it
// rounded, to the nearest millionth, and a half up.
func (a Amount) String() string {
	millionths := int64(a) / unitsPerMillionth
	if int64(a)%unitsPerMillionth >= unitsPerMillionth/2 {
		millionths++
	}
	return fmt.Sprintf("%d.%06d", millionths/1_000_000, millionths%1_000_000)
}

// Float returns the amount in whole units of its currency, for what wants a
// number and can bear that it is only nearly the amount.
func (a Amount) Float() float64 { return float64(a) / unitsPerMillionth / 1_000_000 }

// Charge is what one answer cost, and who says so.
type Charge struct {
	Amount   Amount
	Currency string
	Source   string // ChargeVendor or ChargePrices
}

// The sources of a charge.
const (
	ChargeVendor = "vendor" // the vendor's own figure
	ChargePrices = "prices" // the prices of the settings
)

// amount returns n times each, both not below zero.
func amount(n, each int64) Amount {
	high, low := bits.Mul64(uint64(max(n, 0)), uint64(max(each, 0)))
	if high > 0 || low > math.MaxInt64 {
		return math.MaxInt64
	}
	return Amount(low)
}

// Price is what a model's tokens cost: millionths of a currency for a million of
// them, which is trillionths for one.
type Price struct {
	Input, Output int64
	// CacheRead and CacheWrite are of input that was read from the vendor's
	// cache, or written to it; Reasoning is of output that was thought.
	CacheRead, CacheWrite, Reasoning int64
}

// Cost returns what u costs, exactly. Each token counts once: as cached or not,
// as reasoning or not.
func (p Price) Cost(u Usage) Amount {
	plainInput := max(u.Input-u.CacheRead-u.CacheWrite, 0)
	plainOutput := max(u.Output-u.Reasoning, 0)
	var sum Amount
	for _, part := range [...]struct {
		tokens int
		each   int64
	}{{plainInput, p.Input}, {u.CacheRead, p.CacheRead}, {u.CacheWrite, p.CacheWrite}, {plainOutput, p.Output}, {u.Reasoning, p.Reasoning}} {
		sum = sum.Add(amount(int64(part.tokens), part.each))
	}
	return sum
}

// MatchModel reports whether a pattern means a model: the name itself, in which
// each * stands for any letters or none.
func MatchModel(pattern, model string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == model
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(model) < len(first)+len(last) || !strings.HasPrefix(model, first) || !strings.HasSuffix(model, last) {
		return false
	}
	rest := model[len(first) : len(model)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return true
}
